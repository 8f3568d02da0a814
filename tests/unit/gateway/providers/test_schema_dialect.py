"""The method by which an answer is brought to match its schema.

Schemas in the words of a provider that, unlike OpenAI's strict mode, lets keys be left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.schema_dialect import (
    ANSWER_TOOL,
    SchemaDialect,
    convert_schema,
    is_any,
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


SUBSET = SchemaDialect(
    name="it",
    keywords={"type": is_any, "minItems": (0, 1).__contains__},
    allows_optional_keys=True,
    object_root=False,
    allows_recursion=False,
    allows_overlapping_choices=True,
)


def an_object(properties: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **others}


def test_optional_keys_stay_optional_and_are_counted() -> None:
    written = convert_schema(
        an_object({"a": {"type": "string"}, "b": {"type": "null"}}, required=["b"]),
        SUBSET,
    )
    assert written.schema is not None
    assert (written.schema["required"], written.optional) == (["b"], 1)
    assert written.schema["properties"]["a"] == {"type": "string"}


def test_parts_of_several_types_are_counted() -> None:
    branches = {"anyOf": [an_object({"k": {"type": "null"}}), an_object({"k": {"type": "string"}})]}
    document = {"type": "array", "items": an_object({"a": {"type": ["string", "null"]}, "b": branches})}
    assert convert_schema(document, SUBSET).unions == 2


@pytest.mark.parametrize(("value", "kept"), [(1, True), (2, False)])
def test_a_keyword_is_passed_on_with_values_that_are_known(value: int, *, kept: bool) -> None:
    written = convert_schema({"type": "array", "items": {"type": "null"}, "minItems": value}, SUBSET)
    assert written.schema is not None
    assert ("minItems" in written.schema) is kept
    assert [finding.path for finding in written.dropped] == ([] if kept else ["/minItems"])


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (an_object({"a": {"$ref": "#"}}), "/properties/a/$ref"),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": an_object({"a": {"$ref": "#/$defs/a"}})},
            },
            "/$defs/b/properties/a/$ref",
        ),
    ],
    ids=["the whole", "by a detour"],
)
def test_a_part_that_contains_itself_cannot_be_told(document: dict[str, Any], place: str) -> None:
    written = convert_schema(document, SUBSET)
    assert written.schema is None
    assert [(finding.code, finding.path) for finding in written.dropped] == [("NOT_STRICT", place)]


def test_an_open_subset_takes_objects_with_keys_of_any_name_and_parts_that_may_be_anything() -> None:
    document = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "properties": {"a": True, "b": {}},
    }
    written = convert_schema(document, replace(SUBSET, allows_any=True))
    assert written.schema == {**document, "properties": {"a": {}, "b": {}}}
    assert written.dropped == ()


def test_where_nothing_may_stand_an_open_subset_lets_anything_and_says_so() -> None:
    written = convert_schema({"properties": {"a": False}}, replace(SUBSET, allows_any=True))
    assert written.schema == {"properties": {"a": {}}}
    assert [finding.path for finding in written.dropped] == ["/properties/a"]


def test_nothing_is_said_beside_a_reference() -> None:
    beside = {"$ref": "#/$defs/a", "description": "d", "minItems": 1}
    document = {"type": "array", "items": beside, "$defs": {"a": {"type": "null"}}}
    written = convert_schema(document, SUBSET)
    assert written.schema == {**document, "items": {"$ref": "#/$defs/a"}}
    assert [finding.path for finding in written.dropped] == ["/items/minItems"]


def test_a_constant_is_a_choice_of_one_where_there_are_only_choices() -> None:
    subset = replace(SUBSET, keywords={**SUBSET.keywords, "enum": is_any})
    assert convert_schema({"type": "string", "const": "a"}, subset).schema == {
        "type": "string",
        "enum": ["a"],
    }


def test_a_part_may_be_referred_to_twice() -> None:
    twice = an_object(
        {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a"}},
        **{"$defs": {"a": an_object({"k": {"type": "null"}})}},
    )
    assert convert_schema(twice, SUBSET).schema is not None
