"""How an answer is brought to match a schema, by what a model can do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.catalogue import Capability
from peripety.gateway.model import SchemaMethod, Text, Tool, ToolChoice, ToolChoiceMode
from peripety.gateway.structured import schema_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.model import ChatMessage, GenerateRequest, ResponseSchema
    from peripety.gateway.providers.base import Call

__all__ = ["ANSWER_TOOL", "method_of", "with_answer_tool", "with_hint"]

ANSWER_TOOL = "give_answer"
"""The tool whose arguments are the answer, with `SchemaMethod.TOOL`: its call becomes the answer's text."""


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


def with_hint(messages: Sequence[ChatMessage], schema: ResponseSchema) -> tuple[ChatMessage, ...]:
    """The messages with the schema told at their end, so that what is cached of them stays valid.

    It is a text of its own, the last part of the last message, which is the user's; it begins with a new
    paragraph because providers may join the texts of a message.
    """
    *before, last = messages
    return (*before, replace(last, parts=(*last.parts, Text(f"\n\n{schema_hint(schema.document)}"))))
