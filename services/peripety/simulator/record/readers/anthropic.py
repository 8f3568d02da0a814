"""Reader of answers of Anthropic's Messages API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Stop, Usage

if TYPE_CHECKING:
    from peripety.simulator.record.readers.draft import Draft

__all__ = ["read"]

_STOPS = {
    "end_turn": Stop.END,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "stop_sequence": Stop.STOP_SEQUENCE,
    "tool_use": Stop.TOOL_USE,
    "refusal": Stop.REFUSAL,
}
_TTL = {"ephemeral_5m_input_tokens": "5m", "ephemeral_1h_input_tokens": "1h"}


def read(value: Any, draft: Draft) -> None:
    """Read a message, or an event of one."""
    match value["type"]:
        case "message":
            _begin(value, draft)
            for block in value["content"]:
                _block(block, draft)
            _end(value, draft)
            draft.ended = True
        case "message_start":
            _begin(value["message"], draft)
        case "content_block_start":
            _block({**value["content_block"], "input": None}, draft)
        case "content_block_delta":
            delta = value["delta"]
            draft.text(delta.get("text"))
            draft.reasoning(delta.get("thinking"))
            draft.arguments(delta.get("partial_json"))
        case "message_delta":
            _end({**value["delta"], "usage": value.get("usage")}, draft)
        case "message_stop":
            draft.ended = True
        case "error":
            draft.error = value


def _begin(message: Any, draft: Draft) -> None:
    draft.id = message["id"].removeprefix("msg_")
    _cost(message.get("usage"), draft)


def _block(block: Any, draft: Draft) -> None:
    match block["type"]:
        case "text":
            draft.text(block["text"])
        case "thinking":
            draft.reasoning(block["thinking"])
        case "tool_use":
            draft.call(block["name"], block["id"])
            if block["input"] is not None:
                draft.arguments(json.dumps(block["input"], ensure_ascii=False))
        case _:
            draft.unknown()


def _end(message: Any, draft: Draft) -> None:
    draft.stop = _STOPS.get(message["stop_reason"], Stop.END)
    draft.stop_sequence = message.get("stop_sequence")
    if draft.stop is Stop.REFUSAL:
        draft.refusal((message.get("stop_details") or {}).get("explanation"))
    _cost(message.get("usage"), draft)


def _cost(usage: Any, draft: Draft) -> None:
    """Read token counts. They are cumulative: later counts replace earlier ones."""
    if not usage:
        return
    known = draft.usage or Usage()
    creation = usage.get("cache_creation")
    written = usage.get("cache_creation_input_tokens")
    by_ttl = {ttl: creation[name] for name, ttl in _TTL.items() if creation.get(name)} if creation else {}
    if not by_ttl and written and sum(known.written.values()) != written:
        by_ttl = {"5m": written}
    details = usage.get("output_tokens_details") or {}
    draft.usage = Usage(
        fresh=_latest(usage.get("input_tokens"), known.fresh),
        read=_latest(usage.get("cache_read_input_tokens"), known.read),
        written=by_ttl or known.written,
        output=_latest(usage.get("output_tokens"), known.output),
        reasoning=_latest(details.get("thinking_tokens"), known.reasoning),
    )


def _latest(count: int | None, known: int) -> int:
    return known if count is None else count
