"""Tools and tool choice, nested for Chat Completions and flat for the Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ToolChoiceMode
from peripety.gateway.providers.openai.strict import to_strict_parameters
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from peripety.gateway.model import Tool
    from peripety.gateway.providers.base import Call

__all__ = ["flat_tools", "nested_tools"]

_FREE = {ToolChoiceMode.AUTO: "auto", ToolChoiceMode.NONE: "none", ToolChoiceMode.ANY: "required"}


def nested_tools(call: Call) -> dict[str, Any]:
    """Return the tool fields of Chat Completions."""
    return _fields(call, nested=True)


def flat_tools(call: Call) -> dict[str, Any]:
    """Return the tool fields of the Responses API."""
    return _fields(call, nested=False)


def _fields(call: Call, *, nested: bool) -> dict[str, Any]:
    request, strict = call.request, call.data.traits.strict_schema
    if not request.tools:
        return {}
    told = [_as_function(_told(tool, strict=strict), nested=nested) for tool in request.tools]
    fields: dict[str, Any] = {"tools": told}
    choice = request.tool_choice
    if choice is None:
        return fields
    if choice.disable_parallel:
        fields["parallel_tool_calls"] = False
    if choice.mode is ToolChoiceMode.NAMED:
        named = {"name": to_wire_name(choice.name or "")}
        return {**fields, "tool_choice": _as_function(named, nested=nested)}
    return {**fields, "tool_choice": _FREE[choice.mode]}


def _as_function(told: dict[str, Any], *, nested: bool) -> dict[str, Any]:
    return {"type": "function", "function": told} if nested else {"type": "function", **told}


def _told(tool: Tool, *, strict: bool) -> dict[str, Any]:
    written = to_strict_parameters(tool.input_schema) if strict and tool.strict else None
    told = {
        "name": to_wire_name(tool.name),
        "description": tool.description,
        "parameters": dict(tool.input_schema) if written is None else written,
    }
    # The Responses API enforces the schema by default.
    return {**told, "strict": written is not None} if strict else told
