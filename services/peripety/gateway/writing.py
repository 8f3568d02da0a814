"""Messages and tools as JSON values, for whoever stores them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import (
    ChatMessage,
    ChatRole,
    Part,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_message", "read_tool", "write_message", "write_tool"]

_KINDS: dict[str, type[Part]] = {
    "text": Text,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "provider_state": ProviderState,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write_message(message: ChatMessage) -> dict[str, Any]:
    """Write a message down."""
    return {"role": message.role.value, "parts": [_write_part(part) for part in message.parts]}


def read_message(written: Mapping[str, Any]) -> ChatMessage:
    """Read what `write_message` has written."""
    return ChatMessage(ChatRole(written["role"]), tuple(map(_read_part, written["parts"])))


def write_tool(tool: Tool) -> dict[str, Any]:
    """Write a tool down."""
    return asdict(tool)


def read_tool(written: Mapping[str, Any]) -> Tool:
    """Read what `write_tool` has written."""
    return Tool(**written)


def _write_part(part: Part) -> dict[str, Any]:
    written = asdict(part)
    if isinstance(part, ProviderState):
        written["data"] = b64encode(part.data).decode()
    return {"kind": _NAMES[type(part)], **written}


def _read_part(written: Mapping[str, Any]) -> Part:
    fields = {name: value for name, value in written.items() if name != "kind"}
    if written["kind"] == "provider_state":
        fields["data"] = b64decode(fields["data"])
    return _KINDS[written["kind"]](**fields)
