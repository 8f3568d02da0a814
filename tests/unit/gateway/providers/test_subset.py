"""Schemas in the words of a provider that, unlike OpenAI's strict mode, lets keys be left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peripety.gateway.providers.schema_dialect import SchemaDialect, convert_schema, is_any

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
