"""Request parameters besides messages: tools, answer format, sampling and other settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Tool
from peripety.simulator.wire.anthropic.blocks import marker
from peripety.simulator.wire.anthropic.schemas import check_schema
from peripety.simulator.wire.anthropic.wording import invalid
from peripety.simulator.wire.reading import Fields, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import Marker
    from peripety.simulator.truth.models import Takes

__all__ = [
    "Declared",
    "check_sampling",
    "read_format",
    "read_other",
    "read_stops",
    "read_tool_choice",
    "read_tools",
]

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_FORCED = ("any", "tool")


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool declaration.

    Attributes:
        name: the name of the tool.
        value: its members, as sent.
        marker: the cache breakpoint on it.
        custom: the tool of the caller; None for a tool of the provider.
    """

    name: str
    value: Mapping[str, Any]
    marker: Marker | None
    custom: Tool | None


def read_tools(body: Fields) -> list[Declared]:
    """Parse the tools of a request.

    Raises:
        ApiError: a tool is not valid, or two have the same name.
    """
    tools = [_read_tool(fields) for fields in body.objects("tools", ())]
    if len({tool.name for tool in tools}) < len(tools):
        raise invalid("Tool names must be unique.", body.at("tools"))
    return tools


def _read_tool(fields: Fields) -> Declared:
    type_ = fields.text("type", None)
    if type_ not in (None, "custom"):
        # Provider tools have their own versions and members.
        return Declared(fields.text("name", type_), fields.value, marker(fields), None)
    fields = Fields(fields.value, fields.at("custom"), fields.wording)
    fields.only(
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
        raise invalid(f"String should match pattern '^{_TOOL_NAME.pattern}$'", fields.at("name"))
    description = fields.text("description", "")
    schema = fields.object("input_schema")
    schema.choice("type", ("object",))
    if fields.flag("strict", default=None):
        check_schema(schema.value, fields.path)
    fields.objects("input_examples", ())
    fields.texts("allowed_callers", ())
    fields.flag("defer_loading", default=None)
    fields.flag("eager_input_streaming", default=None)
    return Declared(name, fields.value, marker(fields), Tool(name, description, schema.value))


def read_tool_choice(
    body: Fields, tools: Sequence[Declared], takes: Takes, *, thinking: bool
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
    type_ = choice.choice("type", ("auto", *_FORCED, "none"))
    choice = Fields(choice.value, choice.at(type_), choice.wording)
    members = {"none": (), "tool": ("name", "disable_parallel_tool_use")}
    choice.only("type", *members.get(type_, ("disable_parallel_tool_use",)))
    choice.flag("disable_parallel_tool_use", default=None)
    if type_ == "tool" and choice.text("name") not in {tool.name for tool in tools}:
        raise invalid(f"Tool '{choice.text('name')}' not found in provided tools", body.at("tool_choice"))
    if not tools and type_ != "none":
        raise invalid("tool_choice may only be specified while providing tools")
    if type_ in _FORCED:
        if not takes.forced_tools:
            raise invalid('tool_choice: type "tool" and "any" are not supported for this model.')
        if thinking:
            raise invalid("Thinking may not be enabled when tool_choice forces tool use.")
    return choice.value


def read_format(body: Fields) -> tuple[str | None, Mapping[str, Any] | None]:
    """Parse the effort and the schema in the member `output_config`; None for a missing one."""
    config = body.object("output_config", None)
    if config is None:
        return None, None
    config.only("effort", "format")
    effort = config.choice("effort", _EFFORTS, None)
    form = config.object("format", None)
    if form is None:
        return effort, None
    form.only("type", "schema")
    form.choice("type", ("json_schema",))
    schema = form.object("schema")
    check_schema(schema.value, schema.path)
    return effort, schema.value


def read_stops(body: Fields) -> tuple[str, ...]:
    """Parse the member `stop_sequences`."""
    stops = body.texts("stop_sequences", None)
    if not all(stop.strip() for stop in stops):
        raise invalid("each stop sequence must contain non-whitespace", body.at("stop_sequences"))
    return tuple(stops)


def check_sampling(body: Fields, takes: Takes) -> None:
    """Reject sampling parameters that are out of range or not supported by the model."""
    temperature = body.number("temperature", None)
    if temperature is not None and not 0 <= temperature <= 1:
        raise invalid("range: 0..1", body.at("temperature"))
    top_p = body.number("top_p", None)
    if top_p is not None and not 0 <= top_p <= 1:
        raise invalid("range: 0..1", body.at("top_p"))
    top_k = body.integer("top_k", None)
    given = {
        "temperature": temperature not in (None, 1),
        "top_p": top_p not in (None, 1),
        "top_k": top_k is not None,
    }
    if not takes.sampling and (refused := next((name for name, other in given.items() if other), None)):
        raise invalid(f"`{refused}` is deprecated for this model.")


def read_other(body: Fields) -> None:
    """Check members without an effect on the answer."""
    metadata = body.object("metadata", None)
    if metadata is not None:
        metadata.only("user_id")
        metadata.text("user_id", None)
    body.choice("service_tier", ("auto", "standard_only"), None)
    body.choice("speed", ("standard", "fast"), None)
    body.text("inference_geo", None)
    body.get("container", Kind.STRING, Kind.OBJECT, default=None)
