"""Tools and tool choice of a Messages call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ToolChoiceMode
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.model import GenerateRequest, Tool, ToolChoice
    from peripety.gateway.providers.anthropic.shapes import Shapes

__all__ = ["write_choice", "write_tools"]

_MOST_STRICT = 20
_TYPES = {
    ToolChoiceMode.AUTO: "auto",
    ToolChoiceMode.NONE: "none",
    ToolChoiceMode.ANY: "any",
    ToolChoiceMode.NAMED: "tool",
}


def write_tools(tools: Sequence[Tool], shapes: Shapes) -> list[dict[str, Any]]:
    """Return the tools of a request; one whose schema cannot be enforced is not strict."""
    written = []
    strict = 0
    for tool in tools:
        schema = None
        if tool.strict and strict < _MOST_STRICT:
            schema = shapes.write(tool.input_schema).schema
        strict += schema is not None
        written.append(
            {
                "name": to_wire_name(tool.name),
                **({"description": tool.description} if tool.description else {}),
                "input_schema": dict(tool.input_schema) if schema is None else schema,
                **({} if schema is None else {"strict": True}),
            }
        )
    return written


def write_choice(request: GenerateRequest) -> dict[str, Any] | None:
    """Return the tool choice of a request; None for the default, where the model decides."""
    choice = request.tool_choice
    if choice is None or not request.tools:
        return None
    return {
        "type": _TYPES[choice.mode],
        **({"name": to_wire_name(choice.name)} if choice.name is not None else {}),
        **({"disable_parallel_tool_use": True} if _one_at_a_time(choice) else {}),
    }


def _one_at_a_time(choice: ToolChoice) -> bool:
    return choice.disable_parallel and choice.mode is not ToolChoiceMode.NONE
