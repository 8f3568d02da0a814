"""Parameters of an Anthropic request besides messages: tools, answer format, reasoning and sampling.

Structured answers and strict tools accept a subset of JSON Schema. Reasoning has modes, defaults and a
visibility per model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import SimTool
from peripety.llmsim.wire.anthropic.content_blocks import read_marker
from peripety.llmsim.wire.anthropic.errors import invalid_request
from peripety.llmsim.wire.request_parser import Fields, JsonType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.llmsim.provider_rules.models import ModelFeatures
    from peripety.llmsim.types import CacheBreakpoint
    from peripety.llmsim.wire.request_parser import Path


_UNSUPPORTED_KEYWORDS = {
    "array": ("maxItems", "uniqueItems", "contains"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
    "object": ("minProperties", "maxProperties", "patternProperties"),
}
_SCHEMA_MAPS = ("properties", "$defs", "definitions")
_SCHEMA_LISTS = ("anyOf", "allOf", "oneOf")


def check_schema(schema: Any, path: Path) -> None:
    """Reject a schema that the provider does not support.

    Args:
        schema: the schema, or a part of it.
        path: the path of the schema in error messages.

    Raises:
        ApiError: the schema uses an unsupported keyword, or leaves an object open.
    """
    if not isinstance(schema, dict):
        return
    types = schema.get("type")
    for type_ in types if isinstance(types, list) else [types]:
        _check_type(schema, type_, path)
    for inner in _subschemas(schema):
        check_schema(inner, path)


def _check_type(schema: dict[str, Any], type_: Any, path: Path) -> None:
    keywords = _UNSUPPORTED_KEYWORDS.get(type_, ()) if isinstance(type_, str) else ()
    if refused := next((keyword for keyword in keywords if keyword in schema), None):
        raise invalid_request(f"For '{type_}' type, property '{refused}' is not supported", path)
    if type_ == "object" and schema.get("additionalProperties") is not False:
        raise invalid_request(
            "For 'object' type, 'additionalProperties' must be explicitly set to false",
            path,
        )
    if type_ == "array" and schema.get("minItems", 0) not in (0, 1):
        raise invalid_request("For 'array' type, 'minItems' values other than 0 or 1 are not supported", path)


def _subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    for name in _SCHEMA_MAPS:
        if isinstance(members := schema.get(name), dict):
            yield from members.values()
    for name in _SCHEMA_LISTS:
        if isinstance(choices := schema.get(name), list):
            yield from choices
    yield schema.get("items")


_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_FORCED_CHOICES = ("any", "tool")


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool declaration.

    Attributes:
        name: the name of the tool.
        value: its members, as sent.
        marker: the cache breakpoint on it.
        sim_tool: the tool of the caller; None for a tool of the provider.
    """

    name: str
    value: Mapping[str, Any]
    marker: CacheBreakpoint | None
    sim_tool: SimTool | None


def read_tools(body: Fields) -> list[DeclaredTool]:
    """Parse the tools of a request.

    Raises:
        ApiError: a tool is not valid, or two have the same name.
    """
    tools = [_read_tool(fields) for fields in body.objects("tools", ())]
    if len({tool.name for tool in tools}) < len(tools):
        raise invalid_request("Tool names must be unique.", body.path_of("tools"))
    return tools


def _read_tool(fields: Fields) -> DeclaredTool:
    type_ = fields.text("type", None)
    if type_ not in (None, "custom"):
        # Provider tools have their own versions and members.
        return DeclaredTool(fields.text("name", type_), fields.value, read_marker(fields), None)
    fields = Fields(fields.value, fields.path_of("custom"), fields.messages)
    fields.reject_others(
        "type",
        "name",
        "description",
        "input_schema",
        "input_examples",
        "strict",
        "allowed_callers",
        "defer_loading",
        "eager_input_streaming",
        "cache_control",
    )
    name = fields.text("name")
    if not _TOOL_NAME.fullmatch(name):
        raise invalid_request(f"String should match pattern '^{_TOOL_NAME.pattern}$'", fields.path_of("name"))
    description = fields.text("description", "")
    schema = fields.object("input_schema")
    schema.choice("type", ("object",))
    if fields.flag("strict", default=None):
        check_schema(schema.value, fields.path)
    fields.objects("input_examples", ())
    fields.texts("allowed_callers", ())
    fields.flag("defer_loading", default=None)
    fields.flag("eager_input_streaming", default=None)
    return DeclaredTool(name, fields.value, read_marker(fields), SimTool(name, description, schema.value))


def read_tool_choice(
    body: Fields,
    tools: Sequence[DeclaredTool],
    takes: ModelFeatures,
    *,
    thinking: bool,
) -> dict[str, Any]:
    """Parse the member `tool_choice`, and apply its default.

    Args:
        body: the request.
        tools: its tools.
        takes: the features of its model.
        thinking: True if the request enables reasoning.

    Raises:
        ApiError: the choice is not valid, or the model does not support it.
    """
    choice = body.object("tool_choice", None)
    if choice is None:
        return {"type": "auto"}
    type_ = choice.choice("type", ("auto", *_FORCED_CHOICES, "none"))
    choice = Fields(choice.value, choice.path_of(type_), choice.messages)
    members = {"none": (), "tool": ("name", "disable_parallel_tool_use")}
    choice.reject_others("type", *members.get(type_, ("disable_parallel_tool_use",)))
    choice.flag("disable_parallel_tool_use", default=None)
    if type_ == "tool" and choice.text("name") not in {tool.name for tool in tools}:
        raise invalid_request(
            f"Tool '{choice.text('name')}' not found in provided tools",
            body.path_of("tool_choice"),
        )
    if not tools and type_ != "none":
        raise invalid_request("tool_choice may only be specified while providing tools")
    if type_ in _FORCED_CHOICES:
        if not takes.forced_tools:
            raise invalid_request('tool_choice: type "tool" and "any" are not supported for this model.')
        if thinking:
            raise invalid_request("Thinking may not be enabled when tool_choice forces tool use.")
    return choice.value


def read_format(body: Fields) -> tuple[str | None, Mapping[str, Any] | None]:
    """Parse the effort and the schema in the member `output_config`; None for a missing one."""
    config = body.object("output_config", None)
    if config is None:
        return None, None
    config.reject_others("effort", "format")
    effort = config.choice("effort", _EFFORTS, None)
    form = config.object("format", None)
    if form is None:
        return effort, None
    form.reject_others("type", "schema")
    form.choice("type", ("json_schema",))
    schema = form.object("schema")
    check_schema(schema.value, schema.path)
    return effort, schema.value


def read_stops(body: Fields) -> tuple[str, ...]:
    """Parse the member `stop_sequences`."""
    stops = body.texts("stop_sequences", None)
    if not all(stop.strip() for stop in stops):
        raise invalid_request(
            "each stop sequence must contain non-whitespace",
            body.path_of("stop_sequences"),
        )
    return tuple(stops)


def check_sampling(body: Fields, takes: ModelFeatures) -> None:
    """Reject sampling parameters that are out of range or not supported by the model."""
    temperature = body.number("temperature", None)
    if temperature is not None and not 0 <= temperature <= 1:
        raise invalid_request("range: 0..1", body.path_of("temperature"))
    top_p = body.number("top_p", None)
    if top_p is not None and not 0 <= top_p <= 1:
        raise invalid_request("range: 0..1", body.path_of("top_p"))
    top_k = body.integer("top_k", None)
    given = {
        "temperature": temperature not in (None, 1),
        "top_p": top_p not in (None, 1),
        "top_k": top_k is not None,
    }
    if not takes.sampling and (refused := next((name for name, other in given.items() if other), None)):
        raise invalid_request(f"`{refused}` is deprecated for this model.")


def read_other(body: Fields) -> None:
    """Check members without an effect on the answer."""
    metadata = body.object("metadata", None)
    if metadata is not None:
        metadata.reject_others("user_id")
        metadata.text("user_id", None)
    body.choice("service_tier", ("auto", "standard_only"), None)
    body.choice("speed", ("standard", "fast"), None)
    body.text("inference_geo", None)
    body.get("container", JsonType.STRING, JsonType.OBJECT, default=None)


MIN_REASONING_BUDGET = 1024

_DISPLAYS = ("summarized", "omitted")


@dataclass(frozen=True, slots=True)
class ReasoningDefaults:
    """Reasoning defaults of a model.

    Attributes:
        modes: the supported values of `thinking.type`.
        default: the default mode.
        display: True if reasoning is shown by default.
        effort: the default effort.
        keeps_earlier_reasoning: True if the model still reads the reasoning of earlier turns.
    """

    modes: tuple[str, ...] = ("adaptive", "enabled", "disabled", "between_tools")
    default: str = "disabled"
    display: str = "summarized"
    effort: str = "high"
    keeps_earlier_reasoning: bool = True


_ALWAYS_REASONING = ReasoningDefaults(("adaptive",), "adaptive", "omitted")
_DEFAULT_REASONING = ReasoningDefaults(("adaptive", "disabled"), "adaptive", "omitted")
_OPTIONAL_REASONING = ReasoningDefaults(("adaptive", "disabled"), "disabled", "omitted")
_BUDGETED_REASONING = ReasoningDefaults(
    ("enabled", "disabled"),
    "disabled",
    "summarized",
    keeps_earlier_reasoning=False,
)

# The first matching glob applies; models without a match support everything.
_DEFAULTS_BY_MODEL = {
    "claude-opus-5-5*": ReasoningDefaults(_ALWAYS_REASONING.modes, "adaptive", "omitted", effort="medium"),
    "claude-fable-*": _ALWAYS_REASONING,
    "claude-mythos-*": _ALWAYS_REASONING,
    "claude-sonnet-5-5*": ReasoningDefaults(("adaptive", "disabled", "between_tools"), "adaptive", "omitted"),
    "claude-3*": _BUDGETED_REASONING,
    "claude-opus-4-[78]*": _OPTIONAL_REASONING,
    "claude-*-4-6*": ReasoningDefaults(("adaptive", "enabled", "disabled")),
    "claude-opus-4-5*": ReasoningDefaults(_BUDGETED_REASONING.modes),
    "claude-*-4-*": _BUDGETED_REASONING,
    "claude-*-5*": _DEFAULT_REASONING,
}


@lru_cache(256)
def reasoning_defaults(model: str) -> ReasoningDefaults:
    """Return the reasoning defaults of a model."""
    return next(
        (found for glob, found in _DEFAULTS_BY_MODEL.items() if fnmatchcase(model, glob)),
        ReasoningDefaults(),
    )


@dataclass(frozen=True, slots=True)
class ReasoningSettings:
    """Reasoning settings of one request.

    Attributes:
        mode: the mode.
        is_explicit: True if the request set the mode.
        budget: the token budget of reasoning, with the mode `enabled`.
        shown: True if the answer contains the reasoning text, not only its signature.
    """

    mode: str
    is_explicit: bool = False
    budget: int | None = None
    shown: bool = True

    @property
    def is_enabled(self) -> bool:
        """True if reasoning is enabled."""
        return self.mode != "disabled"


def read_thinking(body: Fields, model: ReasoningDefaults, max_tokens: int | None) -> ReasoningSettings:
    """Parse the member `thinking`.

    Args:
        body: the request.
        model: the reasoning defaults of its model.
        max_tokens: maximum number of output tokens; None without an answer.

    Raises:
        ApiError: the settings are not valid, or the model does not support them.
    """
    fields = body.object("thinking", None)
    if fields is None:
        return ReasoningSettings(model.default, shown=model.display == "summarized")
    mode = fields.choice("type", ReasoningDefaults().modes)
    if mode not in model.modes:
        raise _unsupported_mode_error(mode)
    fields = type(fields)(fields.value, fields.path_of(mode), fields.messages)
    budget = None
    if mode == "enabled":
        fields.reject_others("type", "budget_tokens", "display")
        budget = fields.integer("budget_tokens")
        if budget < MIN_REASONING_BUDGET:
            raise invalid_request(
                f"Input should be greater than or equal to {MIN_REASONING_BUDGET}",
                fields.path_of("budget_tokens"),
            )
        if max_tokens is not None and budget >= max_tokens:
            raise invalid_request("`max_tokens` must be greater than `thinking.budget_tokens`.")
    elif mode == "adaptive":
        fields.reject_others("type", "display")
    else:
        fields.reject_others("type")
    display = fields.choice("display", _DISPLAYS, None) or model.display
    return ReasoningSettings(mode, is_explicit=True, budget=budget, shown=display == "summarized")


def _unsupported_mode_error(mode: str) -> Exception:
    if mode == "adaptive":
        return invalid_request("adaptive thinking is not supported on this model")
    if mode == "between_tools":
        return invalid_request('"thinking.type.between_tools" is not supported for this model.')
    return invalid_request(
        f'"thinking.type.{mode}" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
    )
