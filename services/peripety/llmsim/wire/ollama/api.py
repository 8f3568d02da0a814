"""Wire of Ollama's native API: operations, and answers as JSON lines.

The lines have the format of Go's encoder, which Ollama uses; the last one has the durations.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import (
    Api,
    ApiErrorKind,
    FrameTag,
    ReasoningPart,
    SimStopReason,
    StreamFrame,
    ToolUsePart,
)
from peripety.llmsim.wire.base import HttpDocument, Route, Wire, WireOperation, compact_json
from peripety.llmsim.wire.ollama.request_parser import read_chat, read_generate, read_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.llmsim.provider_rules.limits import RateAllowance
    from peripety.llmsim.types import ApiError, ReplyPart, SimReply, SimRequest
    from peripety.llmsim.wire.base import HttpCall, SimService


# In JSON, these characters only occur in content, so a plain replacement is safe. Go escapes them for
# browsers; without line separators, clients can split at them.
_ESCAPES = tuple(
    (character.encode(), f"\\u{ord(character):04x}".encode())
    for character in ("<", ">", "&", "\u2028", "\u2029")
)


def json_line(value: Any) -> bytes:
    """Return the JSON text of a value, as a line."""
    written = compact_json(value)
    for character, escape in _ESCAPES:
        written = written.replace(character, escape)
    return written + b"\n"


# Reported durations in nanoseconds, as on a machine of constant speed.
LOAD_NANOSECONDS = 50_000_000
PROMPT_NANOSECONDS = 100_000
OUTPUT_NANOSECONDS = 10_000_000


def _chat_members(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": "", **said}}


def _generate_members(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"response": said.get("content", ""), **{name: v for name, v in said.items() if name != "content"}}


# Content members of the two operations.
_FORMS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "chat": _chat_members,
    "generate": _generate_members,
}


def answer_document(reply: SimReply, form: str, loading: str | None) -> dict[str, Any]:
    """Return a complete answer.

    Args:
        reply: the answer.
        form: the operation.
        loading: without a prompt, whether the model is loaded or unloaded.
    """
    if loading is not None:
        return {**_line_head(reply), **_FORMS[form]({}), "done": True, "done_reason": loading}
    calls = [_call(part) for part in reply.parts if isinstance(part, ToolUsePart)]
    thinking = "".join(part.text for part in reply.parts if isinstance(part, ReasoningPart))
    text = "".join(part.text for part in reply.parts if not isinstance(part, ReasoningPart | ToolUsePart))
    said: dict[str, Any] = {"content": text}
    if thinking:
        said["thinking"] = thinking
    if calls:
        said["tool_calls"] = calls
    return {**_line_head(reply), **_FORMS[form](said), **_line_end(reply)}


def answer_frames(reply: SimReply, form: str, loading: str | None) -> Iterator[StreamFrame[bytes]]:
    """Yield the same answer as lines."""
    if loading is not None:
        yield _line(answer_document(reply, form, loading), FrameTag.END)
        return
    head = _line_head(reply)
    for part in reply.parts:
        for tag, said, count in _line_contents(part):
            yield _line({**head, **_FORMS[form](said), "done": False}, tag, count)
    yield _line({**head, **_FORMS[form]({}), **_line_end(reply)}, FrameTag.END)


def _line(value: Mapping[str, Any], tag: FrameTag, count: int = 0) -> StreamFrame[bytes]:
    return StreamFrame(json_line(value), tag, count)


def _line_contents(part: ReplyPart) -> Iterator[tuple[FrameTag, dict[str, Any], int]]:
    """Yield the content of each line; a tool call is one line."""
    if isinstance(part, ToolUsePart):
        weight = models.count_tokens(part.name) + models.count_tokens(part.arguments_json)
        yield FrameTag.ARGUMENTS, {"tool_calls": [_call(part)]}, weight
        return
    tag, name = (
        (FrameTag.REASONING, "thinking") if isinstance(part, ReasoningPart) else (FrameTag.TEXT, "content")
    )
    for piece, count in zip(part.pieces, models.token_shares(part.pieces), strict=True):
        yield tag, {name: piece}, count


def _call(part: ToolUsePart) -> dict[str, Any]:
    return {"function": {"name": part.name, "arguments": part.arguments}}


def _line_head(reply: SimReply) -> dict[str, Any]:
    created = datetime.fromtimestamp(reply.created, UTC)
    return {"model": reply.model, "created_at": created.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}


def _line_end(reply: SimReply) -> dict[str, Any]:
    read, written = reply.usage.input, reply.usage.output
    return {
        "done": True,
        "done_reason": "length" if reply.stop is SimStopReason.LENGTH else "stop",
        "total_duration": LOAD_NANOSECONDS + PROMPT_NANOSECONDS * read + OUTPUT_NANOSECONDS * written,
        "load_duration": LOAD_NANOSECONDS,
        "prompt_eval_count": read,
        "prompt_eval_duration": PROMPT_NANOSECONDS * read,
        "eval_count": written,
        "eval_duration": OUTPUT_NANOSECONDS * written,
    }


VERSION = "0.14.0"

_STATUSES = {
    ApiErrorKind.INVALID_REQUEST: 400,
    ApiErrorKind.AUTHENTICATION: 401,
    ApiErrorKind.BILLING: 402,
    ApiErrorKind.PERMISSION: 403,
    ApiErrorKind.NOT_FOUND: 404,
    ApiErrorKind.METHOD_NOT_ALLOWED: 405,
    ApiErrorKind.CONFLICT: 409,
    ApiErrorKind.TOO_LARGE: 413,
    ApiErrorKind.RATE_LIMIT: 429,
    ApiErrorKind.SERVER: 500,
    ApiErrorKind.UNAVAILABLE: 503,
    ApiErrorKind.OVERLOADED: 503,
    ApiErrorKind.TIMEOUT: 504,
}
_DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "scripted",
    "families": ["scripted"],
    "parameter_size": "0B",
    "quantization_level": "unknown",
}
_CAPABILITIES = ["completion", "tools", "thinking", "vision"]


class OllamaWire(Wire):
    """`/api/chat`, `/api/generate` and the model endpoints."""

    api = Api.OLLAMA
    routes: Sequence[Route] = (
        Route("POST", "/api/chat", WireOperation.GENERATE, "chat"),
        Route("POST", "/api/generate", WireOperation.GENERATE, "generate"),
        Route("POST", "/api/show", WireOperation.OTHER, "show"),
        Route("GET", "/api/tags", WireOperation.OTHER, "tags"),
        Route("GET", "/api/ps", WireOperation.OTHER, "ps"),
        Route("GET", "/api/version", WireOperation.OTHER, "version"),
    )

    def media_type(self, request: SimRequest) -> str:  # noqa: ARG002 - every stream is of one kind
        """Return the type of JSON lines."""
        return "application/x-ndjson"

    def parse_request(self, call: HttpCall, service: SimService) -> SimRequest:  # noqa: ARG002 - nothing is stored here
        """Parse a request for a model answer."""
        read = read_chat if call.route.name == "chat" else read_generate
        return replace(read(call.body), key=call.bearer, conversation=call.conversation)

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        """Return the only line of an answer that is not streamed."""
        return answer_document(reply, **request.options)

    def frames(self, request: SimRequest, reply: SimReply) -> Sequence[StreamFrame[bytes]]:
        """Return the lines of an answer."""
        return list(answer_frames(reply, **request.options))

    def headers(self, request_id: str, allowance: RateAllowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the headers of every answer: neither ids nor limits."""
        return {}

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:  # noqa: ARG002
        """Return an error response, without a retry hint."""
        value = {"error": error.message}
        if error.kind is ApiErrorKind.AUTHENTICATION:
            value["signin_url"] = "https://ollama.com/connect"
        return HttpDocument(_STATUSES[error.kind], compact_json(value))

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:  # noqa: ARG002
        """Return a line with the error instead of `done`."""
        return json_line({"error": error.message})

    def handle_other(self, call: HttpCall, service: SimService) -> HttpDocument:
        """Handle model information and the version."""
        match call.route.name:
            case "tags":
                models = [_list_entry(model.name, service.now()) for model in service.models(self.api)]
                value: dict[str, Any] = {"models": models}
            case "show":
                _, name = read_model(call.body)
                value = _show_value(name, service.now())
            case "ps":
                value = {"models": []}  # a scripted model uses no memory
            case _:
                value = {"version": VERSION}
        return HttpDocument(200, compact_json(value))


def _list_entry(name: str, now: float) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": _format_time(now),
        "size": 0,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "details": _DETAILS,
    }


def _show_value(name: str, now: float) -> dict[str, Any]:
    return {
        "modelfile": f"FROM {name}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _DETAILS,
        "model_info": {"general.architecture": "scripted"},
        "capabilities": _CAPABILITIES,
        "modified_at": _format_time(now),
    }


def _format_time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
