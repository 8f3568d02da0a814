"""Anthropic answers: a message, or the events that build one; and the model list, with pagination."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    SimStopReason,
    StreamFrame,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.anthropic.errors import invalid_request
from peripety.llmsim.wire.base import compact_json, sse_event

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.types import BilledUsage, ReplyPart, SimReply


_STOPS = {
    SimStopReason.END: "end_turn",
    SimStopReason.TOOL_USE: "tool_use",
    SimStopReason.LENGTH: "max_tokens",
    SimStopReason.STOP_SEQUENCE: "stop_sequence",
    SimStopReason.REFUSAL: "refusal",
    SimStopReason.CONTENT_FILTER: "refusal",
}


def format_call_id(id_: str) -> str:
    """Return the id of a tool call in the provider's format."""
    return f"toolu_{id_}"


def message_value(
    reply: SimReply,
    *,
    shown: bool,
    speed: str,
    diagnostics: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return an answer as a message.

    Args:
        reply: the answer.
        shown: True to include reasoning text, not only its signature.
        speed: the requested speed.
        diagnostics: the cache diagnostics.
    """
    return {
        **_message_head(reply),
        "content": [_complete_block(part, shown=shown) for part in _content_parts(reply)],
        **_message_end(reply),
        "diagnostics": diagnostics,
        "usage": {**_input(reply.usage, speed), **_output(reply.usage)},
    }


def message_frames(
    reply: SimReply,
    *,
    shown: bool,
    speed: str,
    diagnostics: Mapping[str, Any] | None,
) -> Iterator[StreamFrame[bytes]]:
    """Yield the same answer as events."""
    first = {
        **_message_head(reply),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "diagnostics": diagnostics,
    }
    begun = {**_input(reply.usage, speed), "output_tokens": min(1, reply.usage.output)}
    yield _event(FrameTag.START, "message_start", {"message": {**first, "usage": begun}})
    yield _event(FrameTag.NOISE, "ping", {})
    for index, part in enumerate(_content_parts(reply)):
        yield _event(
            FrameTag.PART,
            "content_block_start",
            {"index": index, "content_block": _empty_block(part)},
        )
        for tag, delta, count in _block_deltas(part, shown=shown):
            yield _event(tag, "content_block_delta", {"index": index, "delta": delta}, count)
        yield _event(FrameTag.PART, "content_block_stop", {"index": index})
    yield _event(FrameTag.STOP, "message_delta", {"delta": _message_end(reply), "usage": _total(reply.usage)})
    yield _event(FrameTag.END, "message_stop", {})


def _event(tag: FrameTag, name: str, data: Mapping[str, Any], count: int = 0) -> StreamFrame[bytes]:
    return StreamFrame(sse_event(compact_json({"type": name, **data}), name), tag, count)


def _message_head(reply: SimReply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _message_end(reply: SimReply) -> dict[str, Any]:
    reason = _STOPS[reply.stop]
    details = None
    if reason == "refusal":
        words = "".join(part.text for part in reply.parts if isinstance(part, RefusalPart))
        details = {"type": "refusal", "category": None, "explanation": words or None}
    return {"stop_reason": reason, "stop_sequence": reply.stop_sequence, "stop_details": details}


# ---- parts


def _content_parts(reply: SimReply) -> list[TextPart | ReasoningPart | ToolUsePart]:
    """Return the content parts. A refusal is not content; the stop details report it."""
    return [
        part
        for part in reply.parts
        if not isinstance(part, RefusalPart) and (part.pieces or isinstance(part, ToolUsePart))
    ]


def _complete_block(part: ReplyPart, *, shown: bool) -> dict[str, Any]:
    match part:
        case ReasoningPart():
            return {"type": "thinking", "thinking": part.text if shown else "", "signature": part.signature}
        case ToolUsePart():
            return {**_empty_block(part), "input": part.arguments}
        case _:
            return {"type": "text", "text": part.text}


def _empty_block(part: ReplyPart) -> dict[str, Any]:
    match part:
        case ReasoningPart():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUsePart():
            return {"type": "tool_use", "id": format_call_id(part.id), "name": part.name, "input": {}}
        case _:
            return {"type": "text", "text": ""}


def _block_deltas(part: ReplyPart, *, shown: bool) -> Iterator[tuple[FrameTag, dict[str, Any], int]]:
    match part:
        case ReasoningPart():
            for piece, count in _with_tokens(part.pieces) if shown else ():
                yield FrameTag.REASONING, {"type": "thinking_delta", "thinking": piece}, count
            # Hidden reasoning takes time, too.
            hidden = 0 if shown else models.count_tokens(part.text)
            yield FrameTag.PART, {"type": "signature_delta", "signature": part.signature}, hidden
        case ToolUsePart():
            yield (
                FrameTag.PART,
                {"type": "input_json_delta", "partial_json": ""},
                models.count_tokens(part.name),
            )
            for piece, count in _with_tokens(part.pieces):
                yield FrameTag.ARGUMENTS, {"type": "input_json_delta", "partial_json": piece}, count
        case _:
            for piece, count in _with_tokens(part.pieces):
                yield FrameTag.TEXT, {"type": "text_delta", "text": piece}, count


def _with_tokens(pieces: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    return zip(pieces, models.token_shares(pieces), strict=True)


# ---- usage


def _input(usage: BilledUsage, speed: str) -> dict[str, Any]:
    return {
        **_cumulative_input(usage),
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written.get("5m", 0),
            "ephemeral_1h_input_tokens": usage.written.get("1h", 0),
        },
        "server_tool_use": None,
        "service_tier": "standard",
        "speed": speed,
        "inference_geo": "global",
    }


def _cumulative_input(usage: BilledUsage) -> dict[str, int]:
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": sum(usage.written.values()),
        "cache_read_input_tokens": usage.read,
    }


def _output(usage: BilledUsage) -> dict[str, Any]:
    return {"output_tokens": usage.output, "output_tokens_details": {"thinking_tokens": usage.reasoning}}


def _total(usage: BilledUsage) -> dict[str, Any]:
    return {**_cumulative_input(usage), **_output(usage)}


DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 1000

_EPOCH = date(1970, 1, 1)


def model_value(models: Sequence[SimModel], name: str) -> dict[str, Any]:
    """Return one model.

    Raises:
        ApiError: the model does not exist.
    """
    found = next((model for model in models if model.name == name), None)
    if found is None:
        raise ApiError(ApiErrorKind.NOT_FOUND, f"model: {name}")
    return _model_fields(found)


def model_page(models: Sequence[SimModel], params: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the list, newest first.

    Args:
        models: all models.
        params: `limit`, and `after_id` or `before_id`.

    Raises:
        ApiError: a parameter is not valid.
    """
    limit = _parse_limit(params.get("limit"))
    listed = sorted(models, key=lambda model: (model.released or _EPOCH, model.name), reverse=True)
    names = [model.name for model in listed]
    begin, end = 0, len(listed)
    if (after := params.get("after_id")) is not None:
        begin = _index_of(names, after, "after_id") + 1
        end = min(end, begin + limit)
        more = end < len(listed)
    elif (before := params.get("before_id")) is not None:
        end = _index_of(names, before, "before_id")
        begin = max(0, end - limit)
        more = begin > 0
    else:
        end = min(end, limit)
        more = end < len(listed)
    page = listed[begin:end]
    return {
        "data": [_model_fields(model) for model in page],
        "has_more": more,
        "first_id": page[0].name if page else None,
        "last_id": page[-1].name if page else None,
    }


def _parse_limit(value: str | None) -> int:
    if value is None:
        return DEFAULT_PAGE_SIZE
    if not value.isdecimal():
        raise invalid_request(
            "Input should be a valid integer, unable to parse string as an integer",
            ("limit",),
        )
    limit = int(value)
    if not 1 <= limit <= MAX_PAGE_SIZE:
        bound = "greater than or equal to 1" if limit < 1 else f"less than or equal to {MAX_PAGE_SIZE}"
        raise invalid_request(f"Input should be {bound}", ("limit",))
    return limit


def _index_of(names: Sequence[str], name: str, param: str) -> int:
    if name not in names:
        raise invalid_request(f"unknown model: {name}", (param,))
    return names.index(name)


def _model_fields(model: SimModel) -> dict[str, Any]:
    released = datetime.combine(model.released or _EPOCH, time(), UTC)
    return {
        "type": "model",
        "id": model.name,
        "display_name": _display_name(model.name),
        "created_at": released.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": None,
        "max_input_tokens": model.context,
        "max_tokens": model.output,
        "capabilities": None,
    }


def _display_name(name: str) -> str:
    """Format a display name: `claude-opus-5-5` becomes Claude Opus 5.5."""
    words = [word for word in name.split("-") if not word.isdecimal()]
    version = [word for word in name.split("-") if word.isdecimal()]
    return " ".join([*(word.capitalize() for word in words), ".".join(version)]).strip()
