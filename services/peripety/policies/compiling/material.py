"""System texts: instructions, and at their end the material that a conversation is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.policies.prompts import prompt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.policies.model import CompileOrder, ToolAnnotation

__all__ = ["as_text", "material", "system_text", "tool_document"]


def system_text(name: str, about: Mapping[str, Any]) -> str:
    """The system text of a conversation: a prompt, and as its last line the material as a JSON object."""
    return f"{prompt(name)}\n{as_text(about)}"


def material(order: CompileOrder, tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    """What conversations about some tools have to know."""
    return {
        "constitution": order.constitution,
        "tools": [tool_document(tool) for tool in tools],
        "invariants": [*order.invariants],
        "lists": dict(order.lists),
    }


def tool_document(tool: ToolAnnotation) -> dict[str, Any]:
    """A tool as in a policy document, without what nobody said."""
    document: dict[str, Any] = {"server_name": tool.server_name, "tool_name": tool.tool_name}
    if tool.description:
        document["description"] = tool.description
    if tool.input_schema is not None:
        document["input_schema"] = tool.input_schema
    if tool.argument_roles:
        document["argument_roles"] = [{"path": path, "role": role} for path, role in tool.argument_roles]
    if tool.read_only:
        document["read_only"] = True
    if tool.destructive:
        document["destructive"] = True
    return document


def as_text(value: Any) -> str:
    """JSON in one line, the same for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
