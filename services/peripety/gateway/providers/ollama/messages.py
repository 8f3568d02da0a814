"""Turns of a conversation as Ollama's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ChatRole, ProviderState, Text, ToolResult
from peripety.gateway.providers.earlier_turns import arguments_of, as_user_text, tools_called
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.gateway.model import ChatMessage

__all__ = ["ISSUER", "to_messages"]

ISSUER = "ollama"

_Json = dict[str, Any]


def to_messages(messages: Sequence[ChatMessage], *, system_messages: bool) -> list[_Json]:
    """Convert the turns; a turn without any supported part is omitted.

    Args:
        messages: merged.
        system_messages: whether instructions between messages are supported.
    """
    called = tools_called(messages)
    return [
        written
        for message in messages
        for written in _written(message, called, system_messages=system_messages)
    ]


def _written(message: ChatMessage, called: Mapping[str, str], *, system_messages: bool) -> Iterator[_Json]:
    match message.role:
        case ChatRole.SYSTEM if system_messages:
            yield {"role": "system", "content": message.text}
        case ChatRole.SYSTEM:
            yield {"role": "user", "content": as_user_text(message)}
        case ChatRole.USER:
            yield from _results(message, called)
            texts = [part.text for part in message.parts if isinstance(part, Text)]
            if texts:
                yield {"role": "user", "content": "".join(texts)}
        case ChatRole.ASSISTANT:
            said = _said(message)
            if said:
                yield {"role": "assistant", "content": "", **said}


def _results(message: ChatMessage, called: Mapping[str, str]) -> Iterator[_Json]:
    """Yield results in the order of their calls: they are matched by order and tool name."""
    order = {call_id: place for place, call_id in enumerate(called)}
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in sorted(results, key=lambda each: order[each.call_id]):
        text = f"Error: {result.text}" if result.is_error else result.text
        yield {"role": "tool", "tool_name": to_wire_name(called[result.call_id]), "content": text}


def _said(message: ChatMessage) -> _Json:
    thoughts = [
        part.data.decode(errors="replace")
        for part in message.parts
        if isinstance(part, ProviderState) and part.issuer == ISSUER
    ]
    calls = [
        {"function": {"name": to_wire_name(call.name), "arguments": arguments_of(call)}}
        for call in message.tool_calls
    ]
    said = {"content": message.text, "thinking": "".join(thoughts), "tool_calls": calls}
    return {name: value for name, value in said.items() if value}
