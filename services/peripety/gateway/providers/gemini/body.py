"""Request body of a Gemini call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.catalogue import Capability
from peripety.gateway.model import ToolChoice, ToolChoiceMode
from peripety.gateway.providers.gemini.contents import to_contents
from peripety.gateway.providers.refusing import (
    forced_tool,
    one_call_at_a_time,
    refuse_inexpressible,
    too_many_stops,
)
from peripety.gateway.providers.schemas import structured
from peripety.gateway.providers.subset import Subset, anything, write_schema
from peripety.gateway.providers.wire import Body
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.errors import FieldViolation, Finding
    from peripety.gateway.model import GenerateRequest, ResponseSchema, Tool
    from peripety.gateway.providers.base import Call

__all__ = ["to_gemini_body"]

_MOST_STOPS = 5
_LARGEST_SEED = 2**31 - 1


def _are_texts_and_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in values)


_KEYWORDS = frozenset({"type", "title", "description", "minItems", "maxItems", "minimum", "maximum"})
_JSON_SCHEMA = Subset(
    name="Gemini",
    keywords={
        **dict.fromkeys(_KEYWORDS, anything),
        "format": frozenset({"date-time", "date", "time"}).__contains__,
        "enum": _are_texts_and_numbers,
    },
    leaves_out=True,
    object_root=False,
    recursive=True,
    parts_choices=True,
    open=True,
)


def to_gemini_body(call: Call) -> Body:
    """Return the body of a call; unset options are omitted.

    Raises:
        InvalidArgumentError: the model does not support an option; the message names it.
    """
    refuse_inexpressible(call, _inexpressible(call))
    asked = structured(call, _told)
    request = asked.call.request
    document = {
        "systemInstruction": {"parts": [{"text": request.system}]} if request.system else None,
        "contents": to_contents(asked.call),
        "tools": [{"functionDeclarations": [_declared(each) for each in request.tools]}]
        if request.tools
        else None,
        "toolConfig": _tool_config(request),
        "generationConfig": _options(call) | _format(asked.told) or None,
    }
    return Body({name: value for name, value in document.items() if value is not None}, asked.report)


def _inexpressible(call: Call) -> Iterator[FieldViolation]:
    yield from too_many_stops(call.request, _MOST_STOPS)
    yield from one_call_at_a_time(call.request)
    yield from forced_tool(call)


def _told(schema: ResponseSchema) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    written = write_schema(schema.document, _JSON_SCHEMA)
    return written.schema, written.dropped


def _format(told: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options that enforce a schema."""
    return {} if told is None else {"responseMimeType": "application/json", "responseJsonSchema": told}


def _declared(tool: Tool) -> dict[str, Any]:
    return {
        "name": to_wire_name(tool.name),
        "description": tool.description,
        "parametersJsonSchema": tool.input_schema,
    }


def _tool_config(request: GenerateRequest) -> dict[str, Any] | None:
    if not request.tools:
        return None
    choice = request.tool_choice or ToolChoice()
    config: dict[str, Any]
    match choice.mode:
        case ToolChoiceMode.NONE:
            config = {"mode": "NONE"}
        case ToolChoiceMode.ANY:
            config = {"mode": "ANY"}
        case ToolChoiceMode.NAMED:
            config = {"mode": "ANY", "allowedFunctionNames": [to_wire_name(choice.name or "")]}
        case ToolChoiceMode.AUTO:
            # Schemas are enforced for the arguments of all tools or of none.
            config = {"mode": "VALIDATED" if any(tool.strict for tool in request.tools) else "AUTO"}
    return {"functionCallingConfig": config}


def _options(call: Call) -> dict[str, Any]:
    request = call.request
    options = {
        "maxOutputTokens": request.max_output_tokens,
        "temperature": request.temperature if call.data.traits.sampling else None,
        # The API accepts 31 bits; equal seeds map to equal values.
        "seed": None if request.seed is None else request.seed & _LARGEST_SEED,
        "stopSequences": list(request.stop_sequences) or None,
        "thinkingConfig": {"includeThoughts": True} if _reasons(call) else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _reasons(call: Call) -> bool:
    return Capability.REASONING in call.data.capabilities
