"""Wire of DeepSeek's API: Chat Completions with visible reasoning, and its own error messages."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from peripety.llmsim.provider_rules.models import count_tokens
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    SimRequest,
    StreamFrame,
    TextPart,
)
from peripety.llmsim.wire import base
from peripety.llmsim.wire.base import HttpDocument, Route, Wire, WireOperation, compact_json
from peripety.llmsim.wire.openai import chat_response
from peripety.llmsim.wire.openai.api import list_models
from peripety.llmsim.wire.openai.chat_request import ChatMessages, mentions_json, read_stops, read_stream
from peripety.llmsim.wire.openai.chat_response import ChatCompletion, ErrorShape, join_texts, part_chunks
from peripety.llmsim.wire.openai.prompt import PromptDraft, read_credential
from peripety.llmsim.wire.openai.tools import NESTED_LAYOUT
from peripety.llmsim.wire.request_parser import Fields, JsonType, bracketed_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.llmsim.provider_rules.limits import RateAllowance
    from peripety.llmsim.types import BilledUsage, SimBlock, SimReply
    from peripety.llmsim.wire.base import HttpCall, SimService
    from peripety.llmsim.wire.openai.chat_response import ContentDelta
    from peripety.llmsim.wire.request_parser import Path


_NAMES = {
    JsonType.STRING: "string",
    JsonType.INTEGER: "integer",
    JsonType.NUMBER: "floating point",
    JsonType.BOOLEAN: "boolean",
    JsonType.OBJECT: "map",
    JsonType.ARRAY: "sequence",
    JsonType.NULL: "null",
}

_TYPES = {
    ApiErrorKind.AUTHENTICATION: (401, "authentication_error"),
    ApiErrorKind.BILLING: (402, "unknown_error"),
    ApiErrorKind.PERMISSION: (403, "permission_error"),
    ApiErrorKind.NOT_FOUND: (404, "invalid_request_error"),
    ApiErrorKind.METHOD_NOT_ALLOWED: (405, "invalid_request_error"),
    ApiErrorKind.CONFLICT: (409, "invalid_request_error"),
    ApiErrorKind.TOO_LARGE: (413, "invalid_request_error"),
    ApiErrorKind.RATE_LIMIT: (429, "rate_limit_error"),
    ApiErrorKind.SERVER: (500, "internal_error"),
    ApiErrorKind.UNAVAILABLE: (503, "service_unavailable_error"),
    ApiErrorKind.OVERLOADED: (503, "service_unavailable_error"),
    ApiErrorKind.TIMEOUT: (504, "internal_error"),
}


class DeepSeekErrorMessages:
    """Error messages in the words of `api.deepseek.com`."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        return invalid_request(f"Failed to parse the request body as JSON: {reason}")

    def missing_member(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        return _deserialize_error(path[:-1], f"missing field `{path[-1]}`")

    def wrong_type(self, path: Path, wanted: Sequence[JsonType], value: Any) -> ApiError:
        """Return the error for a value of the wrong type."""
        expected = " or ".join(f"a {_NAMES[kind]}" for kind in wanted)
        return _deserialize_error(
            path,
            f"invalid type: {_NAMES[JsonType.of_value(value)]}, expected {expected}",
        )

    def invalid_choice(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        """Return the error for a text that is not an allowed value."""
        quoted = ", ".join(f"`{choice}`" for choice in choices)
        expected = f"one of {quoted}" if len(choices) > 1 else quoted
        return _deserialize_error(path, f"unknown variant `{value}`, expected {expected}")

    def unexpected_member(self, path: Path) -> None:
        """Ignore unknown members."""


def invalid_request(message: str) -> ApiError:
    """Return an invalid request error."""
    return ApiError(ApiErrorKind.INVALID_REQUEST, message)


def error_shape(error: ApiError) -> ErrorShape:
    """Return the format of an error."""
    status, name = _TYPES.get(error.kind, (400, "invalid_request_error"))
    return ErrorShape(status, name, "invalid_request_error")


def _deserialize_error(path: Path, reason: str) -> ApiError:
    place = f"{bracketed_path(path)}: " if path else ""
    return invalid_request(f"Failed to deserialize the JSON body into the target type: {place}{reason}")


_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max", "ultra")
_STOPS = 16
_OUTPUT = 393_216
_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2)}


class _DeepSeekMessages(ChatMessages):
    """Messages whose reasoning must be sent back with the tool calls that follow it."""

    roles = ("system", "user", "assistant", "tool")

    def __init__(self, draft: PromptDraft, *, thinking: bool) -> None:
        super().__init__(draft)
        self._thinking = thinking

    def unanswered_calls_error(self, ids: Sequence[str]) -> ApiError:  # noqa: ARG002
        """Return the error for tool calls without results."""
        return invalid_request(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. (insufficient tool messages following tool_calls message)",
        )

    def orphaned_result_error(self, at: int) -> ApiError:  # noqa: ARG002
        """Return the error for a result without a call."""
        return invalid_request(
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        )

    def unknown_call_error(self, at: int, call_id: str) -> ApiError:  # noqa: ARG002
        """Return the error for a result of an unknown call."""
        return self.orphaned_result_error(at)

    def read_extra_members(self, at: int, message: Fields, *, calling: bool) -> None:
        """Read reasoning. The model only reads it again if tool calls followed it."""
        thoughts = message.text("reasoning_content", None)
        if not calling:
            return
        if thoughts is None:
            if self._thinking:
                raise invalid_request(
                    "The `reasoning_content` in the thinking mode must be passed back to the API.",
                )
            return
        block = {"type": "reasoning_content", "text": thoughts}
        self.draft.add_block(at, "assistant", block, tokens=count_tokens(thoughts))


def answer_to_blocks(message: dict[str, Any], at: int) -> tuple[SimBlock, ...]:
    """Return a model message at an index as prompt blocks."""
    draft = PromptDraft()
    _DeepSeekMessages(draft, thinking=False).read_answer(
        at,
        Fields(message, ("messages", at), DeepSeekErrorMessages()),
    )
    return draft.to_prompt({}, {}).blocks


def read_completion_request(call: HttpCall) -> SimRequest:
    """Parse a chat completion request."""
    body = Fields.parse(call.body, DeepSeekErrorMessages())
    name = body.text("model")
    thinking = _read_thinking(body)
    draft = PromptDraft()
    tools = NESTED_LAYOUT.read_tools(body)
    for tool in body.value.get("tools") or ():
        draft.add_tool(tool)
    _DeepSeekMessages(draft, thinking=thinking).read_messages(body)
    schema = _read_format(body, draft)
    _check_numbers(body, thinking=thinking)
    stream, options = read_stream(body)
    user = body.text("user_id", None)
    prompt = draft.to_prompt(
        {"response_format": body.value.get("response_format"), "thinking": thinking},
        {} if user is None else {"user_id": user},
    )
    return SimRequest(
        api=Api.DEEPSEEK,
        model=name,
        messages=draft.messages,
        system=draft.system,
        tools=tools,
        prompt=prompt,
        key=read_credential(call),
        conversation=call.conversation,
        max_tokens=body.value.get("max_tokens"),
        stop=read_stops(body, _STOPS),
        stream=stream,
        reasoning=thinking,
        schema=schema,
        options=options,
    )


def _read_thinking(body: Fields) -> bool:
    body.choice("reasoning_effort", _EFFORTS, None)
    thinking = body.object("thinking", None)
    return thinking is None or thinking.choice("type", ("enabled", "disabled")) == "enabled"


def _read_format(body: Fields, draft: PromptDraft) -> Mapping[str, Any] | None:
    chosen = body.object("response_format", None)
    kind = "text" if chosen is None else chosen.text("type")
    if kind == "text":
        return None
    if kind != "json_object":
        raise invalid_request("This response_format type is unavailable now")
    if not mentions_json(draft):
        raise invalid_request(
            "Prompt must contain the word 'json' in some form to use 'response_format' of "
            "type 'json_object'.",
        )
    return {}


def _check_numbers(body: Fields, *, thinking: bool) -> None:
    if body.integer("n", None) not in (None, 1):
        raise invalid_request("Invalid n value (currently only n = 1 is supported)")
    most = body.integer("max_tokens", None)
    if most is not None and not 1 <= most <= _OUTPUT:
        raise invalid_request(f"Invalid max_tokens value, the valid range of max_tokens is [1, {_OUTPUT}]")
    for name, (low, high) in _RANGES.items():
        value = body.number(name, None)
        # Reasoning models ignore these.
        if value is not None and not thinking and not low <= value <= high:
            raise invalid_request(f"Invalid {name} value, the valid range of {name} is [{low}, {high}]")


_KEEP_ALIVE = StreamFrame(base.sse_comment("keep-alive"), FrameTag.NOISE)


class DeepSeekCompletion(ChatCompletion):
    """An answer, reasoning first."""

    def frames(self) -> Iterator[StreamFrame[bytes]]:
        """Yield the answer as a stream, with comments before the first token."""
        yield _KEEP_ALIVE
        yield from super().frames()

    def envelope_fields(self, kind: str) -> dict[str, Any]:
        """Return the first members of an answer and of each chunk."""
        reply = self.reply
        return {
            "id": str(UUID(bytes=sha256(reply.id.encode()).digest()[:16], version=4)),
            "object": kind,
            "created": int(reply.created),
            "model": reply.model,
            "system_fingerprint": f"fp_{sha256(reply.model.encode()).hexdigest()[:10]}_prod",
        }

    def message_value(self) -> dict[str, Any]:
        """Return the message of a complete answer; refusals are prose."""
        said: dict[str, Any] = {
            "role": "assistant",
            "content": join_texts(self.reply, TextPart, RefusalPart) or "",
        }
        if self.request.reasoning:
            said["reasoning_content"] = join_texts(self.reply, ReasoningPart) or ""
        calls = [{"index": at, **call} for at, call in enumerate(self.tool_call_values())]
        return {**said, "tool_calls": calls} if calls else said

    def content_deltas(self) -> Iterator[ContentDelta]:
        """Yield the content of each chunk: reasoning first."""
        thinking = self.request.reasoning
        begun: dict[str, Any] = {"role": "assistant", "content": ""}
        yield (
            {**begun, "content": None, "reasoning_content": ""} if thinking else begun,
            FrameTag.START,
            0,
        )
        for part in self.reply.parts:
            if isinstance(part, ReasoningPart):
                for piece, tokens in part_chunks(part):
                    yield {"content": None, "reasoning_content": piece}, FrameTag.REASONING, tokens
        for delta, tag, tokens in self.visible_deltas():
            content = delta.get("content", delta.get("refusal"))
            if content is None:
                yield delta, tag, tokens
            else:
                rest = {"reasoning_content": None} if thinking else {}
                yield {"content": content, **rest}, tag, tokens

    def usage_value(self, usage: BilledUsage) -> dict[str, Any]:
        """Return the usage; input read from the cache is a hit, all other input a miss."""
        return {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            "prompt_cache_hit_tokens": usage.read,
            "prompt_cache_miss_tokens": usage.input - usage.read,
        }


_OVERLOAD_KINDS = (ApiErrorKind.OVERLOADED, ApiErrorKind.UNAVAILABLE)


class DeepSeekWire(Wire):
    """`/chat/completions` and `/models`; the model name distinguishes the first from OpenAI's path."""

    api = Api.DEEPSEEK
    routes = (
        Route("POST", "/chat/completions", WireOperation.GENERATE, "completion"),
        Route("POST", "/v1/chat/completions", WireOperation.GENERATE, "completion"),
        Route("GET", "/models", WireOperation.OTHER, "models"),
    )

    def media_type(self, request: SimRequest) -> str:  # noqa: ARG002
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def parse_request(self, call: HttpCall, service: SimService) -> SimRequest:  # noqa: ARG002
        """Parse a chat completion request."""
        return read_completion_request(call)

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        """Return a `chat.completion`."""
        return DeepSeekCompletion(request, reply).document()

    def frames(self, request: SimRequest, reply: SimReply) -> Sequence[StreamFrame[bytes]]:
        """Return the chunks and `[DONE]`."""
        return tuple(DeepSeekCompletion(request, reply).frames())

    def headers(self, request_id: str, allowance: RateAllowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the request id. The limits apply to concurrent requests and are not reported."""
        return {"x-ds-trace-id": request_id}

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:  # noqa: ARG002
        """Return an error response, always without a retry hint."""
        looks = error_shape(error)
        return HttpDocument(looks.status, compact_json({"error": _error_details(error)}))

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:  # noqa: ARG002
        """Return an error inside a stream; an overload error becomes a finish reason."""
        begun = next((frame for frame in sent if frame.tag is FrameTag.START), None)
        if error.kind not in _OVERLOAD_KINDS or begun is None:
            return base.sse_event(compact_json({"error": _error_details(error)}))
        chunk = json.loads(begun.data.partition(b"data: ")[2])
        chunk["choices"] = [
            {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "insufficient_system_resource"},
        ]
        return base.sse_event(compact_json(chunk)) + base.sse_event(b"[DONE]")

    def answer_blocks(self, request: SimRequest, reply: SimReply) -> Sequence[SimBlock]:
        """Return the answer as the client repeats it; the provider caches it with the prompt."""
        at = max((block.message for block in request.prompt.blocks), default=-1) + 1
        return answer_to_blocks(DeepSeekCompletion(request, reply).message_value(), at)

    def handle_other(self, call: HttpCall, service: SimService) -> HttpDocument:  # noqa: ARG002
        """Return the list of models."""
        return list_models(service.models(self.api), "deepseek")


def _error_details(error: ApiError) -> dict[str, Any]:
    return {**chat_response.error_details(error, error_shape(error)), "param": None}
