"""Anthropic answers: a message, or the events that build one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Frame, Reasoning, Refusal, Stop, Tag, Text, ToolUse
from peripety.simulator.truth import tokens
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.sse import event

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.simulator.model import Part, Reply, Usage

__all__ = ["call_name", "frames", "message"]

_STOPS = {
    Stop.END: "end_turn",
    Stop.TOOL_USE: "tool_use",
    Stop.LENGTH: "max_tokens",
    Stop.STOP_SEQUENCE: "stop_sequence",
    Stop.REFUSAL: "refusal",
    Stop.CONTENT_FILTER: "refusal",
}


def call_name(id_: str) -> str:
    """Return the id of a tool call in the provider's format."""
    return f"toolu_{id_}"


def message(
    reply: Reply, *, shown: bool, speed: str, diagnostics: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return an answer as a message.

    Args:
        reply: the answer.
        shown: True to include reasoning text, not only its signature.
        speed: the requested speed.
        diagnostics: the cache diagnostics.
    """
    return {
        **_head(reply),
        "content": [_whole(part, shown=shown) for part in _parts(reply)],
        **_end(reply),
        "diagnostics": diagnostics,
        "usage": {**_input(reply.usage, speed), **_output(reply.usage)},
    }


def frames(
    reply: Reply, *, shown: bool, speed: str, diagnostics: Mapping[str, Any] | None
) -> Iterator[Frame[bytes]]:
    """Yield the same answer as events."""
    first = {
        **_head(reply),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "diagnostics": diagnostics,
    }
    begun = {**_input(reply.usage, speed), "output_tokens": min(1, reply.usage.output)}
    yield _event(Tag.START, "message_start", {"message": {**first, "usage": begun}})
    yield _event(Tag.NOISE, "ping", {})
    for index, part in enumerate(_parts(reply)):
        yield _event(Tag.PART, "content_block_start", {"index": index, "content_block": _empty(part)})
        for tag, delta, count in _deltas(part, shown=shown):
            yield _event(tag, "content_block_delta", {"index": index, "delta": delta}, count)
        yield _event(Tag.PART, "content_block_stop", {"index": index})
    yield _event(Tag.STOP, "message_delta", {"delta": _end(reply), "usage": _total(reply.usage)})
    yield _event(Tag.END, "message_stop", {})


def _event(tag: Tag, name: str, data: Mapping[str, Any], count: int = 0) -> Frame[bytes]:
    return Frame(event(compact({"type": name, **data}), name), tag, count)


def _head(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _end(reply: Reply) -> dict[str, Any]:
    reason = _STOPS[reply.stop]
    details = None
    if reason == "refusal":
        words = "".join(part.text for part in reply.parts if isinstance(part, Refusal))
        details = {"type": "refusal", "category": None, "explanation": words or None}
    return {"stop_reason": reason, "stop_sequence": reply.stop_sequence, "stop_details": details}


# ---- parts


def _parts(reply: Reply) -> list[Text | Reasoning | ToolUse]:
    """Return the content parts. A refusal is not content; the stop details report it."""
    return [
        part
        for part in reply.parts
        if not isinstance(part, Refusal) and (part.pieces or isinstance(part, ToolUse))
    ]


def _whole(part: Part, *, shown: bool) -> dict[str, Any]:
    match part:
        case Reasoning():
            return {"type": "thinking", "thinking": part.text if shown else "", "signature": part.signature}
        case ToolUse():
            return {**_empty(part), "input": part.input}
        case _:
            return {"type": "text", "text": part.text}


def _empty(part: Part) -> dict[str, Any]:
    match part:
        case Reasoning():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse():
            return {"type": "tool_use", "id": call_name(part.id), "name": part.name, "input": {}}
        case _:
            return {"type": "text", "text": ""}


def _deltas(part: Part, *, shown: bool) -> Iterator[tuple[Tag, dict[str, Any], int]]:
    match part:
        case Reasoning():
            for piece, count in _counted(part.pieces) if shown else ():
                yield Tag.REASONING, {"type": "thinking_delta", "thinking": piece}, count
            # Hidden reasoning takes time, too.
            hidden = 0 if shown else tokens.count(part.text)
            yield Tag.PART, {"type": "signature_delta", "signature": part.signature}, hidden
        case ToolUse():
            yield Tag.PART, {"type": "input_json_delta", "partial_json": ""}, tokens.count(part.name)
            for piece, count in _counted(part.pieces):
                yield Tag.ARGUMENTS, {"type": "input_json_delta", "partial_json": piece}, count
        case _:
            for piece, count in _counted(part.pieces):
                yield Tag.TEXT, {"type": "text_delta", "text": piece}, count


def _counted(pieces: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    return zip(pieces, tokens.shares(pieces), strict=True)


# ---- usage


def _input(usage: Usage, speed: str) -> dict[str, Any]:
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


def _cumulative_input(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": sum(usage.written.values()),
        "cache_read_input_tokens": usage.read,
    }


def _output(usage: Usage) -> dict[str, Any]:
    return {"output_tokens": usage.output, "output_tokens_details": {"thinking_tokens": usage.reasoning}}


def _total(usage: Usage) -> dict[str, Any]:
    return {**_cumulative_input(usage), **_output(usage)}
