"""Tools and tool choice of OpenAI requests, and the JSON Schema subset of strict tools and answers.

Chat Completions nests the members of a function; Responses does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import SimTool
from peripety.llmsim.wire.openai.error_messages import check_length, invalid_request, read_name
from peripety.llmsim.wire.request_parser import JsonType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.llmsim.wire.request_parser import Fields


_UNSUPPORTED = (
    "allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "oneOf",
    "patternProperties", "unevaluatedProperties", "propertyNames", "contains", "uniqueItems",
)  # fmt: skip
_NESTING = 10

SchemaContext = tuple[str, ...]


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """Return the reason that a schema is not strict, in OpenAI's words; None if it is strict."""
    if schema.get("type") != "object":
        given = schema.get("type")
        shown = 'type: "None"' if given is None else f'type: "{given}"'
        return f"schema must be a JSON Schema of 'type: \"object\"', got '{shown}'."
    return _find_strictness_error(schema, (), 0)


def _find_strictness_error(schema: Any, context: SchemaContext, depth: int) -> str | None:
    if not isinstance(schema, dict):
        return f"In context={context}, the schema is not an object."
    if depth > _NESTING:
        return f"In context={context}, the schema is nested deeper than {_NESTING} levels."
    for name in _UNSUPPORTED:
        if name in schema:
            return f"In context={context}, '{name}' is not permitted."
    own = (
        _object_strictness_error(schema, context)
        if "properties" in schema or _has_type(schema, "object")
        else None
    )
    if own is None and _has_type(schema, "array") and "items" not in schema:
        own = f"In context={context}, array schema missing items."
    if own is not None:
        return own
    for at, nested in _nested_schemas(schema):
        found = _find_strictness_error(nested, (*context, *at), depth + (at[0] == "properties"))
        if found is not None:
            return found
    return None


def _has_type(schema: Mapping[str, Any], name: str) -> bool:
    kind = schema.get("type")
    return kind == name or (isinstance(kind, list) and name in kind)


def _object_strictness_error(schema: Mapping[str, Any], context: SchemaContext) -> str | None:
    if schema.get("additionalProperties") is not False:
        return f"In context={context}, 'additionalProperties' is required to be supplied and to be false."
    properties = schema.get("properties", {})
    required = schema.get("required", [] if not properties else None)
    wanted = (
        f"In context={context}, 'required' is required to be supplied and to be an array including every key "
        "in properties."
    )
    if not isinstance(properties, dict) or not isinstance(required, list):
        return wanted
    missing = next((name for name in properties if name not in required), None)
    if missing is not None:
        return f"{wanted} Missing '{missing}'."
    extra = next((name for name in required if name not in properties), None)
    return f"{wanted} Extra required key '{extra}' supplied." if extra is not None else None


def _nested_schemas(schema: Mapping[str, Any]) -> list[tuple[SchemaContext, Any]]:
    found: list[tuple[SchemaContext, Any]] = []
    for name in ("properties", "$defs", "definitions"):
        members = schema.get(name)
        if isinstance(members, dict):
            found += [((name, member), nested) for member, nested in members.items()]
    if "items" in schema:
        found.append((("items",), schema["items"]))
    if isinstance(schema.get("anyOf"), list):
        found += [(("anyOf", str(at)), nested) for at, nested in enumerate(schema["anyOf"])]
    return found


_MAX_TOOLS = 128
_OPTIONS = ("none", "auto", "required")
_MODES = ("auto", "required")


@dataclass(frozen=True, slots=True)
class ToolLayout:
    """Format of a function in an API.

    Attributes:
        nested: True if the members are in `function`, beside the type.
        members: the members of a function, without its type.
        hosted: types of provider-hosted tools; a scripted model never calls them.
    """

    nested: bool
    members: tuple[str, ...]
    hosted: tuple[str, ...]

    def read_tools(self, body: Fields) -> tuple[SimTool, ...]:
        """Return the functions of a request; check all other tool members."""
        given = body.get("tools", JsonType.ARRAY, default=None)
        body.flag("parallel_tool_calls", None)
        if self.nested and given is not None:
            check_length(body.path_of("tools"), given, 1, _MAX_TOOLS)
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
                raise invalid_request(message, name)

    def _inner(self, fields: Fields) -> Fields:
        if not self.nested:
            return fields
        fields.reject_others("type", "function")
        return fields.object("function")

    def _function(self, fields: Fields) -> SimTool:
        function = self._inner(fields)
        function.reject_others(*self.members, *(() if self.nested else ("type",)))
        name = read_name(function)
        description = function.text("description", None) or ""
        parameters = function.object("parameters", None)
        schema = {} if parameters is None else parameters.value
        if function.flag("strict", None):
            fault = schema_fault(schema)
            if fault is not None:
                message = f"Invalid schema for function '{name}': {fault}"
                raise invalid_request(message, function.path_of("parameters"), "invalid_function_parameters")
        return SimTool(name, description, schema)

    def _check_choice(self, body: Fields, names: set[str]) -> None:
        choice = body.get("tool_choice", JsonType.STRING, JsonType.OBJECT, default=None)
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
            raise invalid_request(f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice")


NESTED_LAYOUT = ToolLayout(
    nested=True,
    members=("name", "description", "parameters", "strict"),
    hosted=("custom",),
)
FLAT_LAYOUT = ToolLayout(
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
