"""How an answer is brought to match a schema, by what a model can do."""

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
"""The tool whose arguments are the answer, with `SchemaMethod.TOOL`: its call becomes the answer's text."""

Express: TypeAlias = "Callable[[ResponseSchema], tuple[Mapping[str, Any] | None, tuple[Finding, ...]]]"
"""Brings a schema into the words of a provider's structured output, or not, and says what is lost by that."""


@dataclass(frozen=True, slots=True)
class Structured:
    """A call as it is made for the sake of its schema.

    Attributes:
        call: the call, with what its schema adds to tools or messages.
        told: the schema for the provider's own structured output; None where that is not used.
        report: what became of the schema, when there is one.
    """

    call: Call
    told: Mapping[str, Any] | None = None
    report: SchemaReport | None = None


def structured(call: Call, express: Express) -> Structured:
    """Bring a call into the form in which its answer matches its schema best."""
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
    """How the answer to a call is brought to match its schema; None when it has none.

    Args:
        call: the call.
        native: whether the provider's own structured output can express the schema.
    """
    schema, can, traits = call.request.schema, call.data.capabilities, call.data.traits
    if schema is None:
        return None
    if native and Capability.NATIVE_SCHEMA in can:
        return SchemaMethod.NATIVE
    is_object = schema.document.get("type") == "object"
    # Beside tools of the caller's a forced one would keep the model from calling them.
    if is_object and Capability.TOOLS in can and traits.forced_tool_choice and not call.request.tools:
        return SchemaMethod.TOOL
    return SchemaMethod.GRAMMAR if Capability.GRAMMAR in can else SchemaMethod.EXTRACTION


def with_answer_tool(request: GenerateRequest, schema: ResponseSchema) -> GenerateRequest:
    """The request with one tool, which has to be called with the answer, in place of the schema."""
    tool = Tool(ANSWER_TOOL, f"Gives the whole answer ({schema.name}). Call it once.", schema.document)
    choice = ToolChoice(ToolChoiceMode.NAMED, ANSWER_TOOL, disable_parallel=True)
    return replace(request, schema=None, tools=(tool,), tool_choice=choice)


def hint_stays(request: GenerateRequest) -> bool:
    """Whether the words that tell a schema are a part of what later requests will begin with."""
    return request.cache.expected_reuse > 0


def with_hint(request: GenerateRequest, schema: ResponseSchema) -> GenerateRequest:
    """The request with its schema told in words.

    Where more requests are going to begin the same way, it ends the system text, which is cached. Else it
    ends the messages, so that what is cached of them stays valid: it is a text of its own there, the last
    part of the last message, which is the user's, and begins with a new paragraph because providers may join
    the texts of a message.
    """
    hint = schema_hint(schema.document)
    if hint_stays(request):
        return replace(request, system=f"{request.system}\n\n{hint}" if request.system else hint)
    *before, last = request.messages
    told = replace(last, parts=(*last.parts, Text(f"\n\n{hint}")))
    return replace(request, messages=(*before, told))
