"""Conversation as items of a Responses request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ChatRole, ProviderState, Reasoning, Text, ToolCall, ToolResult
from peripety.gateway.providers.earlier_turns import to_call_id
from peripety.gateway.providers.openai.caching import cache_marks
from peripety.gateway.providers.openai_responses.kept import kept_item
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.gateway.model import ChatMessage
    from peripety.gateway.providers.base import Call

__all__ = ["to_items"]

_Item = dict[str, Any]
_MAX_CALL_ID = 64


def to_items(call: Call) -> list[_Item]:
    """Return the system text and the messages of a call, with breakpoints on their last texts."""
    marks, role = cache_marks(call), call.data.traits.instructions_role
    items: list[_Item] = []
    if call.request.system is not None:
        items += [_said(role, call.request.system, marks.system)]
    for index, message in enumerate(call.request.messages):
        mark = marks.messages.get(index, {})
        match message.role:
            case ChatRole.SYSTEM:
                items.append(_said(role, message.text, mark))
            case ChatRole.USER:
                items += _users(message, mark)
            case ChatRole.ASSISTANT:
                items += _models(message, call)
    return items


def _users(message: ChatMessage, mark: Mapping[str, Any]) -> Iterator[_Item]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            # The API has no field for a failed tool.
            output = f"Error: {part.text}" if part.is_error else part.text
            call_id = to_call_id(part.call_id, _MAX_CALL_ID)
            yield {"type": "function_call_output", "call_id": call_id, "output": output}
    if message.text:
        yield _said("user", message.text, mark)


def _models(message: ChatMessage, call: Call) -> list[_Item]:
    items: list[_Item] = []
    phase: _Item = {}
    for part in message.parts:
        match part:
            case Text() if part.text:
                items.append({"type": "message", "role": "assistant", "content": part.text, **phase})
                phase = {}
            case ToolCall():
                items.append(_called(part))
            case ProviderState():
                kept = kept_item(call, part)
                if kept.get("type") == "message":
                    phase = {"phase": kept.get("phase")}
                elif kept:
                    items.append(kept)
            case Text() | Reasoning() | ToolResult():
                pass
    # Reasoning must be followed by its result; an item without one is rejected.
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _called(call: ToolCall) -> _Item:
    return {
        "type": "function_call",
        "call_id": to_call_id(call.call_id, _MAX_CALL_ID),
        "name": to_wire_name(call.name),
        "arguments": call.arguments,
    }


def _said(role: str, text: str, mark: Mapping[str, Any]) -> _Item:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text, **mark}]}
