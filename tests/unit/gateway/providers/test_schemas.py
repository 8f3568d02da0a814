"""The method by which an answer is brought to match its schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.schema_dialect import (
    ANSWER_TOOL,
    schema_method_of,
    with_answer_tool,
    with_schema_hint,
)
from peripety.gateway.structured_output.validator import schema_hint
from peripety.gateway.types.message import ChatMessage, Text, Tool, ToolChoiceMode
from peripety.gateway.types.request import CacheConfig, GenerateRequest, ResponseSchema
from peripety.gateway.types.response import SchemaMethod
from support.gateway.requests import asking, call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.provider import ProviderCall


SCHEMA = ResponseSchema("thing", {"type": "object", "properties": {"a": {"type": "integer"}}})
TOOL = Tool("look", "", {"type": "object"})


def a_call(*can: Capability, forced: bool = True, **options: Any) -> ProviderCall:
    call = call_of(asking(**{"schema": SCHEMA, **options}))
    traits = replace(call.data.traits, forced_tool_choice=forced)
    return replace(call, data=replace(call.data, capabilities=frozenset(can), traits=traits))


def test_without_a_schema_there_is_no_method() -> None:
    assert schema_method_of(a_call(Capability.NATIVE_SCHEMA, schema=None)) is None


def test_the_providers_own_way_goes_first() -> None:
    assert schema_method_of(a_call(*Capability)) is SchemaMethod.NATIVE


def test_a_schema_that_the_provider_cannot_express_is_brought_about_by_a_tool() -> None:
    assert schema_method_of(a_call(*Capability), native=False) is SchemaMethod.TOOL


@pytest.mark.parametrize(
    "options",
    [
        {"forced": False},
        {"tools": (TOOL,)},
        {"schema": ResponseSchema("list", {"type": "array", "items": {"type": "integer"}})},
    ],
    ids=["a tool cannot be demanded", "there are tools of the caller's", "arguments have to be an object"],
)
def test_without_the_answer_tool_a_grammar_holds_the_answer_and_else_nothing_does(
    options: dict[str, Any],
) -> None:
    assert schema_method_of(a_call(Capability.TOOLS, Capability.GRAMMAR, **options)) is SchemaMethod.GRAMMAR
    assert schema_method_of(a_call(Capability.TOOLS, **options)) is SchemaMethod.EXTRACTION


def test_a_model_without_tools_answers_in_free_text() -> None:
    assert schema_method_of(a_call()) is SchemaMethod.EXTRACTION


def test_the_answer_tool_takes_the_answer_as_its_arguments_and_has_to_be_called() -> None:
    request = with_answer_tool(asking(schema=SCHEMA), SCHEMA)
    (tool,), choice = request.tools, request.tool_choice
    assert (tool.name, tool.input_schema, request.schema) == (ANSWER_TOOL, SCHEMA.document, None)
    assert choice is not None
    assert (choice.mode, choice.name, choice.disable_parallel) == (ToolChoiceMode.NAMED, ANSWER_TOOL, True)
    assert to_wire_name(ANSWER_TOOL) == ANSWER_TOOL


def test_the_schema_is_told_at_the_end_and_nothing_before_it_changes() -> None:
    messages = (ChatMessage.user("a"), ChatMessage.assistant("b"), ChatMessage.user("c"))
    request = with_schema_hint(GenerateRequest("s", messages), SCHEMA)
    assert (request.system, request.messages[:2]) == ("s", messages[:2])
    assert request.messages[2].parts == (Text("c"), Text("\n\n" + schema_hint(SCHEMA.document)))


@pytest.mark.parametrize(("system", "before"), [("s", "s\n\n"), (None, "")])
def test_the_schema_is_told_in_the_beginning_where_more_requests_will_begin_with_it(
    system: str | None,
    before: str,
) -> None:
    messages = (ChatMessage.user("a"),)
    request = with_schema_hint(GenerateRequest(system, messages, cache=CacheConfig(expected_reuse=1)), SCHEMA)
    assert (request.system, request.messages) == (before + schema_hint(SCHEMA.document), messages)
