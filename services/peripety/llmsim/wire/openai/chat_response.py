"""Chat completion writer: complete, or as stream chunks; and headers and errors of all OpenAI operations."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.models import count_tokens, token_shares
from peripety.llmsim.types import (
    ApiErrorKind,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    SimStopReason,
    StreamFrame,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire import base
from peripety.llmsim.wire.base import HttpDocument, compact_json, retry_headers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.llmsim.provider_rules.limits import BucketState, RateAllowance
    from peripety.llmsim.types import ApiError, BilledUsage, ReplyPart, SimReply, SimRequest


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """The format of a kind of error."""

    status: int
    type: str
    code: str | None = None


_SHAPES = {
    ApiErrorKind.INVALID_REQUEST: ErrorShape(400, "invalid_request_error"),
    ApiErrorKind.AUTHENTICATION: ErrorShape(401, "invalid_request_error", "invalid_api_key"),
    ApiErrorKind.BILLING: ErrorShape(429, "insufficient_quota", "insufficient_quota"),
    ApiErrorKind.PERMISSION: ErrorShape(403, "invalid_request_error"),
    ApiErrorKind.NOT_FOUND: ErrorShape(404, "invalid_request_error"),
    ApiErrorKind.METHOD_NOT_ALLOWED: ErrorShape(405, "invalid_request_error", "method_not_supported"),
    ApiErrorKind.CONFLICT: ErrorShape(409, "invalid_request_error"),
    ApiErrorKind.TOO_LARGE: ErrorShape(413, "invalid_request_error", "request_too_large"),
    ApiErrorKind.RATE_LIMIT: ErrorShape(429, "requests", "rate_limit_exceeded"),
    ApiErrorKind.SERVER: ErrorShape(500, "server_error"),
    ApiErrorKind.UNAVAILABLE: ErrorShape(503, "service_unavailable_error"),
    ApiErrorKind.OVERLOADED: ErrorShape(503, "service_unavailable_error", "server_is_overloaded"),
    ApiErrorKind.TIMEOUT: ErrorShape(504, "server_error", "timeout"),
}


def error_shape(error: ApiError) -> ErrorShape:
    """Return the format of an error; its own code overrides the default one."""
    usual = _SHAPES[error.kind]
    limited_by_tokens = error.kind is ApiErrorKind.RATE_LIMIT and "tokens per min" in error.message
    return ErrorShape(usual.status, "tokens" if limited_by_tokens else usual.type, error.code or usual.code)


def error_details(error: ApiError, looks: ErrorShape) -> dict[str, Any]:
    """Return the error object."""
    return {"message": error.message, "type": looks.type, "param": error.param, "code": looks.code}


def error_document(error: ApiError, looks: ErrorShape, now: float) -> HttpDocument:
    """Return an error response."""
    body = compact_json({"error": error_details(error, looks)})
    return HttpDocument(looks.status, body, retry_headers(error.retry, now))


def json_document(value: Any) -> HttpDocument:
    """Return a JSON value as a response."""
    return HttpDocument(200, compact_json(value))


def response_headers(request_id: str, allowance: RateAllowance | None) -> Mapping[str, str]:
    """Return the headers of every answer."""
    found = {"x-request-id": f"req_{request_id}", "openai-version": "2020-10-01"}
    if allowance is not None:
        found |= _limit_headers("requests", allowance.requests) | _limit_headers("tokens", allowance.tokens)
    return found


def _limit_headers(name: str, bucket: BucketState | None) -> dict[str, str]:
    if bucket is None:
        return {}
    return {
        f"x-ratelimit-limit-{name}": str(bucket.limit),
        f"x-ratelimit-remaining-{name}": str(bucket.remaining),
        f"x-ratelimit-reset-{name}": format_duration(bucket.reset_seconds),
    }


def format_duration(seconds: float) -> str:
    """Format a duration as `17ms`, `1.5s`, `6m0s` or `1h0m0s`, rounded up."""
    milliseconds = ceil(seconds * 1000)
    if milliseconds < 1000:  # noqa: PLR2004 - a second
        return f"{milliseconds}ms"
    whole, rest = divmod(milliseconds, 1000)
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{whole}.{rest:03}".rstrip("0").rstrip(".") + "s"
    if minutes or hours:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


_FINISH = {
    SimStopReason.END: "stop",
    SimStopReason.STOP_SEQUENCE: "stop",
    SimStopReason.REFUSAL: "stop",
    SimStopReason.TOOL_USE: "tool_calls",
    SimStopReason.LENGTH: "length",
    SimStopReason.CONTENT_FILTER: "content_filter",
}
_TIERS = {"fast": "priority", "priority": "priority", "flex": "flex", "scale": "scale"}
_DONE = base.sse_event(b"[DONE]")
_PAD = 16

ContentDelta = tuple[dict[str, Any], FrameTag, int]


class ChatCompletion:
    """An answer in OpenAI's format; compatible APIs override what differs."""

    def __init__(self, request: SimRequest, reply: SimReply) -> None:
        self.request = request
        self.reply = reply

    def document(self) -> dict[str, Any]:
        """Return the answer as one JSON value."""
        choice = {
            "index": 0,
            "message": self.message_value(),
            "logprobs": None,
            "finish_reason": _FINISH[self.reply.stop],
        }
        return {
            **self.envelope_fields("chat.completion"),
            "choices": [choice],
            "usage": self.usage_value(self.reply.usage),
        }

    def frames(self) -> Iterator[StreamFrame[bytes]]:
        """Yield the answer as a stream."""
        options = self.request.options
        envelope = self.envelope_fields("chat.completion.chunk")
        head = compact_json(envelope)[:-1] + b',"choices":[{"index":0,"delta":'
        tail = b'}],"usage":null' if options.get("include_usage") else b"}]"
        pad = options.get("include_obfuscation")

        def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
            body = compact_json(delta)
            rest = b',"obfuscation":' + compact_json(obfuscation_padding(body)) + b"}" if pad else b"}"
            return base.sse_event(
                head + body + b',"logprobs":null,"finish_reason":' + compact_json(finish) + tail + rest,
            )

        for delta, tag, tokens in self.content_deltas():
            yield StreamFrame(chunk(delta), tag, tokens)
        yield StreamFrame(chunk({}, _FINISH[self.reply.stop]), FrameTag.STOP)
        if options.get("include_usage"):
            last = {**envelope, "choices": [], "usage": self.usage_value(self.reply.usage)}
            yield StreamFrame(base.sse_event(compact_json(last)), FrameTag.USAGE)
        yield StreamFrame(_DONE, FrameTag.END)

    # ---- hooks of compatible APIs

    def envelope_fields(self, kind: str) -> dict[str, Any]:
        """Return the first members of an answer and of each chunk."""
        reply = self.reply
        return {
            "id": f"chatcmpl-{reply.id}",
            "object": kind,
            "created": int(reply.created),
            "model": reply.model,
            "service_tier": actual_service_tier(self.request.options.get("service_tier")),
            "system_fingerprint": "fp_" + sha256(reply.model.encode()).hexdigest()[:10],
        }

    def message_value(self) -> dict[str, Any]:
        """Return the message of a complete answer."""
        said: dict[str, Any] = {
            "role": "assistant",
            "content": join_texts(self.reply, TextPart),
            "refusal": join_texts(self.reply, RefusalPart),
            "annotations": [],
        }
        calls = self.tool_call_values()
        return {**said, "tool_calls": calls} if calls else said

    def tool_call_values(self) -> list[dict[str, Any]]:
        """Return the tool calls of a complete answer."""
        return [
            {
                "id": f"call_{part.id}",
                "type": "function",
                "function": _function_value(part.name, part.arguments_json),
            }
            for part in self.reply.parts
            if isinstance(part, ToolUsePart)
        ]

    def content_deltas(self) -> Iterator[ContentDelta]:
        """Yield the content of each chunk, with its tag and number of output tokens."""
        # Reasoning is hidden, but its time passes before the first output.
        hidden = sum(count_tokens(part.text) for part in self.reply.parts if isinstance(part, ReasoningPart))
        content = "" if join_texts(self.reply, TextPart) is not None else None
        yield {"role": "assistant", "content": content, "refusal": None}, FrameTag.START, hidden
        yield from self.visible_deltas()

    def visible_deltas(self) -> Iterator[ContentDelta]:
        """Yield the chunks with prose, refusals and tool calls."""
        index = 0
        for part in self.reply.parts:
            if isinstance(part, TextPart):
                for piece, tokens in part_chunks(part):
                    yield {"content": piece}, FrameTag.TEXT, tokens
            elif isinstance(part, RefusalPart):
                for piece, tokens in part_chunks(part):
                    yield {"refusal": piece}, FrameTag.TEXT, tokens
            elif isinstance(part, ToolUsePart):
                begun = {"index": index, "id": f"call_{part.id}", "type": "function"}
                yield (
                    {"tool_calls": [{**begun, "function": _function_value(part.name, "")}]},
                    FrameTag.PART,
                    count_tokens(part.name),
                )
                for piece, tokens in part_chunks(part):
                    added = {"index": index, "function": {"arguments": piece}}
                    yield {"tool_calls": [added]}, FrameTag.ARGUMENTS, tokens
                index += 1

    def usage_value(self, usage: BilledUsage) -> dict[str, Any]:
        """Return the usage object."""
        return {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {
                "cached_tokens": usage.read,
                "cache_write_tokens": sum(usage.written.values()),
                "audio_tokens": 0,
            },
            "completion_tokens_details": {
                "reasoning_tokens": usage.reasoning,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }


def join_texts(reply: SimReply, *kinds: type[TextPart | RefusalPart | ReasoningPart]) -> str | None:
    """Return the text of all parts of these types; None without such parts."""
    found = [part.text for part in reply.parts if isinstance(part, kinds)]
    return "".join(found) if found else None


def part_chunks(part: ReplyPart) -> Iterator[tuple[str, int]]:
    """Yield the pieces of a part, each with its number of tokens."""
    return zip(part.pieces, token_shares(part.pieces), strict=True)


def actual_service_tier(tier: str | None) -> str:
    """Return the service tier that serves a requested tier."""
    return _TIERS.get(tier or "auto", "default")


def _function_value(name: str, arguments: str) -> dict[str, str]:
    return {"name": name, "arguments": arguments}


def obfuscation_padding(data: bytes) -> str:
    """Return deterministic padding that hides the length of a delta."""
    return sha256(data).hexdigest()[: _PAD - len(data) % _PAD]
