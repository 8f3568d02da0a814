"""Tools and tool choice. Chat Completions nests function members; Responses does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.simulator.model import Tool
from peripety.simulator.wire.openai import schemas
from peripety.simulator.wire.openai.wording import invalid, named, sized
from peripety.simulator.wire.reading import Kind

if TYPE_CHECKING:
    from peripety.simulator.wire.reading import Fields

__all__ = ["FLAT", "NESTED", "Layout"]

_MOST = 128
_OPTIONS = ("none", "auto", "required")
_MODES = ("auto", "required")


@dataclass(frozen=True, slots=True)
class Layout:
    """Format of a function in an API.

    Attributes:
        nested: True if the members are in `function`, beside the type.
        members: the members of a function, without its type.
        hosted: types of provider-hosted tools; a scripted model never calls them.
    """

    nested: bool
    members: tuple[str, ...]
    hosted: tuple[str, ...]

    def tools(self, body: Fields) -> tuple[Tool, ...]:
        """Return the functions of a request; check all other tool members."""
        given = body.get("tools", Kind.ARRAY, default=None)
        body.flag("parallel_tool_calls", None)
        if self.nested and given is not None:
            sized(body.at("tools"), given, 1, _MOST)
        if not given:
            self._refuse_without_tools(body)
            return ()
        types = ("function", *self.hosted)
        tools = tuple(
            self._function(fields)
            for fields in body.objects("tools")
            if fields.choice("type", types) == "function"
        )
        self._check_choice(body, {tool.name for tool in tools})
        return tools

    def _refuse_without_tools(self, body: Fields) -> None:
        names = ("tool_choice", "parallel_tool_calls") if self.nested else ()
        for name in names:
            if body.value.get(name) is not None:
                message = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
                raise invalid(message, name)

    def _inner(self, fields: Fields) -> Fields:
        if not self.nested:
            return fields
        fields.only("type", "function")
        return fields.object("function")

    def _function(self, fields: Fields) -> Tool:
        function = self._inner(fields)
        function.only(*self.members, *(() if self.nested else ("type",)))
        name = named(function)
        description = function.text("description", None) or ""
        parameters = function.object("parameters", None)
        schema = {} if parameters is None else parameters.value
        if function.flag("strict", None):
            fault = schemas.fault(schema)
            if fault is not None:
                message = f"Invalid schema for function '{name}': {fault}"
                raise invalid(message, function.at("parameters"), "invalid_function_parameters")
        return Tool(name, description, schema)

    def _check_choice(self, body: Fields, names: set[str]) -> None:
        choice = body.get("tool_choice", Kind.STRING, Kind.OBJECT, default=None)
        if choice is None:
            return
        if isinstance(choice, str):
            body.choice("tool_choice", _OPTIONS)
            return
        fields = body.object("tool_choice")
        kind = fields.choice("type", ("function", "allowed_tools", *self.hosted))
        if kind == "function":
            self._check_known(fields, names)
        elif kind == "allowed_tools":
            allowed = fields.object("allowed_tools") if self.nested else fields
            allowed.choice("mode", _MODES)
            for tool in allowed.objects("tools"):
                if tool.choice("type", ("function", *self.hosted)) == "function":
                    self._check_known(tool, names)

    def _check_known(self, fields: Fields, names: set[str]) -> None:
        name = self._inner(fields).text("name")
        if name not in names:
            raise invalid(f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice")


NESTED = Layout(
    nested=True,
    members=("name", "description", "parameters", "strict"),
    hosted=("custom",),
)
FLAT = Layout(
    nested=False,
    members=(
        "name",
        "description",
        "parameters",
        "strict",
        "async",
        "allowed_callers",
        "defer_loading",
        "output_schema",
    ),
    hosted=(
        "custom",
        "file_search",
        "web_search",
        "web_search_preview",
        "computer",
        "computer_use_preview",
        "code_interpreter",
        "image_generation",
        "local_shell",
        "shell",
        "apply_patch",
        "mcp",
        "namespace",
        "tool_search",
    ),
)
