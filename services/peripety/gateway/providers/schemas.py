"""Structured output: selects the method by which an answer is made to match its schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.gateway.catalogue import Capability
from peripety.gateway.model import SchemaMethod, SchemaReport, Text, Tool, ToolChoice, ToolChoiceMode
from peripety.gateway.objects.structured import schema_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.errors import Finding
    from peripety.gateway.model import GenerateRequest, ResponseSchema
    from peripety.gateway.providers.base import Call

__all__ = [
    "ANSWER_TOOL",
    "Structured",
    "hint_stays",
    "method_of",
    "structured",
    "with_answer_tool",
    "with_hint",
]

ANSWER_TOOL = "give_answer"
"""Answer tool of `SchemaMethod.TOOL`; the arguments of its call become the answer's text."""

Express: TypeAlias = "Callable[[ResponseSchema], tuple[Mapping[str, Any] | None, tuple[Finding, ...]]]"
"""Converts a schema to a provider's structured output, or to None, and reports what is lost."""


@dataclass(frozen=True, slots=True)
class Structured:
    """A call adapted to its schema.

    Attributes:
        call: the call, with the tools or messages for its schema.
        told: the schema for the provider's native structured output; None if that is not used.
        report: how the schema was adapted, if there is one.
    """

    call: Call
    told: Mapping[str, Any] | None = None
    report: SchemaReport | None = None


def structured(call: Call, express: Express) -> Structured:
    """Adapt a call so that its answer matches its schema as well as possible."""
    request, schema = call.request, call.request.schema
    if schema is None:
        return Structured(call)
    can_be_told = Capability.NATIVE_SCHEMA in call.data.capabilities
    told, dropped = express(schema) if can_be_told else (None, ())
    method = method_of(call, native=told is not None) or SchemaMethod.EXTRACTION
    match method:
        case SchemaMethod.TOOL:
            request = with_answer_tool(request, schema)
        case SchemaMethod.EXTRACTION:
            request = with_hint(request, schema)
        case SchemaMethod.NATIVE | SchemaMethod.GRAMMAR:
            pass
    return Structured(replace(call, request=request), told, SchemaReport(method, dropped))


def method_of(call: Call, *, native: bool = True) -> SchemaMethod | None:
    """Return the method by which the answer is made to match its schema; None without a schema.

    Args:
        call: the call.
        native: whether the provider's native structured output can express the schema.
    """
    schema, can, traits = call.request.schema, call.data.capabilities, call.data.traits
    if schema is None:
        return None
    if native and Capability.NATIVE_SCHEMA in can:
        return SchemaMethod.NATIVE
    is_object = schema.document.get("type") == "object"
    # A forced answer tool would prevent calls of the client's own tools.
    if is_object and Capability.TOOLS in can and traits.forced_tool_choice and not call.request.tools:
        return SchemaMethod.TOOL
    return SchemaMethod.GRAMMAR if Capability.GRAMMAR in can else SchemaMethod.EXTRACTION


def with_answer_tool(request: GenerateRequest, schema: ResponseSchema) -> GenerateRequest:
    """Return the request with one required answer tool in place of the schema."""
    tool = Tool(ANSWER_TOOL, f"Gives the whole answer ({schema.name}). Call it once.", schema.document)
    choice = ToolChoice(ToolChoiceMode.NAMED, ANSWER_TOOL, disable_parallel=True)
    return replace(request, schema=None, tools=(tool,), tool_choice=choice)


def hint_stays(request: GenerateRequest) -> bool:
    """Return True if the text that describes a schema belongs to the prefix of later requests."""
    return request.cache.expected_reuse > 0


def with_hint(request: GenerateRequest, schema: ResponseSchema) -> GenerateRequest:
    """Return the request with its schema described in words.

    If more requests will share the prefix, the description ends the cached system text. Otherwise it ends the
    messages, so that the cached prefix stays valid. It is then a separate text, the last part of the last
    message, which is the user's. It starts with a new paragraph, because providers may merge the texts of a
    message.
    """
    hint = schema_hint(schema.document)
    if hint_stays(request):
        return replace(request, system=f"{request.system}\n\n{hint}" if request.system else hint)
    *before, last = request.messages
    told = replace(last, parts=(*last.parts, Text(f"\n\n{hint}")))
    return replace(request, messages=(*before, told))
