"""Request body of a Messages call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation
from peripety.gateway.catalogue import Capability
from peripety.gateway.model import SchemaMethod
from peripety.gateway.providers.anthropic.markers import mark
from peripety.gateway.providers.anthropic.shapes import Shapes
from peripety.gateway.providers.anthropic.tools import write_choice, write_tools
from peripety.gateway.providers.anthropic.turns import Turns
from peripety.gateway.providers.refusing import forced_tool, forces_tool, refuse_inexpressible
from peripety.gateway.providers.schemas import hint_stays, structured
from peripety.gateway.providers.wire import Body

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.gateway.model import GenerateRequest, SchemaReport
    from peripety.gateway.providers.base import Call

__all__ = ["to_anthropic_body", "to_counting_body"]

_HOTTEST = 1.0


def to_anthropic_body(call: Call) -> Body:
    """Return the body of a streaming call; unset options are omitted.

    Raises:
        InvalidArgumentError: the model does not support an option; the message names it.
    """
    refuse_inexpressible(call, _inexpressible(call))
    request = call.request
    prompt, report = _prompt(call)
    optional = {
        "temperature": request.temperature if call.data.traits.sampling else None,
        "stop_sequences": list(request.stop_sequences) or None,
    }
    document = {
        "model": call.model,
        "max_tokens": _max_tokens(call),
        "stream": True,
        **{name: value for name, value in optional.items() if value is not None},
        **prompt,
    }
    return Body(document, report)


def to_counting_body(call: Call) -> Mapping[str, Any]:
    """Return the part of a call that the model reads, for token counting."""
    return {"model": call.model, **_prompt(call)[0]}


def _inexpressible(call: Call) -> Iterator[FieldViolation]:
    request, traits = call.request, call.data.traits
    if traits.sampling and request.temperature is not None and request.temperature > _HOTTEST:
        yield FieldViolation("temperature", f"must be from 0 to {_HOTTEST} for this model")
    if not all(stop.strip() for stop in request.stop_sequences):
        yield FieldViolation("stop_sequences", "must hold more than white space for this model")
    yield from forced_tool(call)


def _prompt(call: Call) -> tuple[dict[str, Any], SchemaReport | None]:
    """Return the part of a body that determines the input tokens, and the schema report."""
    shapes = Shapes()
    asked = structured(call, lambda schema: shapes.tell(schema.document))
    request, report = asked.call.request, asked.report
    turns = Turns(asked.call)
    blocks = list(turns.blocks)
    if report is not None and report.method is SchemaMethod.EXTRACTION and not hint_stays(request):
        # The next call omits the text that describes the schema, so a cached prefix must end before it.
        blocks[-1] = blocks[-1][:-1]
    tools = write_tools(request.tools, shapes)
    system = [{"type": "text", "text": request.system}] if request.system and request.system.strip() else []
    mark(call.breakpoints, tools, system, blocks)
    optional = {
        "tools": tools,
        "system": system,
        "tool_choice": write_choice(request),
        "thinking": _thinking(call, request),
        "output_config": asked.told and {"format": {"type": "json_schema", "schema": asked.told}},
    }
    given = {name: value for name, value in optional.items() if value}
    return {**given, "messages": turns.messages}, report


def _thinking(call: Call, request: GenerateRequest) -> dict[str, Any] | None:
    """Return the reasoning setting: off if a tool is required, because the two exclude each other.

    Else the default.
    """
    thinks = Capability.REASONING in call.data.capabilities and call.data.traits.reasoning_can_be_off
    return {"type": "disabled"} if thinks and forces_tool(request) else None


def _max_tokens(call: Call) -> int:
    """Return the maximum of output tokens, a required field.

    A value above the model's maximum is rejected.
    """
    wanted = call.request.max_output_tokens or call.data.default_output_tokens
    return min(wanted, call.data.max_output_tokens or wanted)
