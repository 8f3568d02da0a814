from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from peripety.errors import Severity
from peripety.gateway.providers.openai.dialect import to_strict_schema

if TYPE_CHECKING:
    from collections.abc import Iterator


def an_object(properties: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the schema of a closed object; all keys are required unless overridden."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **others,
    }


def strict(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The schema in strict form, and the places of what was dropped for it."""
    schema, dropped = to_strict_schema(document)
    assert schema is not None
    assert {(finding.code, finding.severity) for finding in dropped} <= {("NOT_TOLD", Severity.WARNING)}
    return schema, [finding.path for finding in dropped]


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for inner in node.values():
            yield from objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from objects(inner)


EVERYTHING = an_object(
    {
        "text": {"type": "string", "minLength": 1, "pattern": "^a", "format": "date", "default": "a"},
        "address": {"type": "string", "format": "iri"},
        "number": {"type": ["integer", "null"], "minimum": 0, "multipleOf": 2},
        "list": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "uniqueItems": True},
        "choice": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/part"}]},
        "open": {"type": "object", "properties": {"x/y": {"const": 1}}, "maxProperties": 1},
    },
    required=["text"],
    **{
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Everything",
        "if": {"required": ["list"]},
        "$defs": {"part": an_object({"next": {"$ref": "#/$defs/part"}}, required=[])},
    },
)


def test_what_strict_mode_takes_stays_as_it_is() -> None:
    document = an_object(
        {
            "a": {"type": "integer", "minimum": 1, "description": "one"},
            "b": {"type": "string", "enum": ["x"]},
        },
    )
    assert strict(document) == (document, [])


def test_values_without_a_type_are_told_with_theirs() -> None:
    schema, places = strict(an_object({"a": {"enum": ["x", None, 1]}, "b": {"const": True}}))
    assert schema["properties"] == {
        "a": {"enum": ["x", None, 1], "type": ["integer", "null", "string"]},
        "b": {"const": True, "type": ["boolean"]},
    }
    assert places == []


def test_every_object_is_closed_and_requires_every_key() -> None:
    schema, _ = strict(EVERYTHING)
    found = list(objects(schema))
    assert len(found) == 3
    for each in found:
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])


def test_what_is_left_out_is_reported_with_its_place_in_the_schema() -> None:
    _, places = strict(EVERYTHING)
    assert sorted(places) == [
        "/if",
        "/properties/address/format",
        "/properties/choice/oneOf",
        "/properties/list/uniqueItems",
        "/properties/open/additionalProperties",
        "/properties/open/maxProperties",
        "/properties/text/minLength",
    ]


def test_an_optional_key_may_be_null_and_a_required_one_may_not() -> None:
    schema, _ = strict(EVERYTHING)
    assert schema["properties"]["text"] == {"type": "string", "pattern": "^a", "format": "date"}
    assert schema["properties"]["number"]["type"] == ["integer", "null"]
    assert schema["properties"]["address"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "a"},
        {"text": "a", "number": None, "choice": "x"},
        {"text": "a", "list": [{}, {"next": {"next": {}}}], "choice": {}, "open": {"x/y": 1}},
    ],
)
def test_a_valid_answer_can_be_given_in_the_strict_form(answer: dict[str, Any]) -> None:
    def filled(value: Any, keys: list[str]) -> Any:
        return {key: value.get(key) for key in keys}

    def part(value: dict[str, Any]) -> dict[str, Any]:
        return {"next": part(value["next"]) if "next" in value else None}

    given = filled(answer, list(EVERYTHING["properties"]))
    if given["list"] is not None:
        given["list"] = [part(each) for each in given["list"]]
    if given["choice"] == {}:
        given["choice"] = part({})
    jsonschema.Draft202012Validator(EVERYTHING).validate(answer)
    jsonschema.Draft202012Validator(strict(EVERYTHING)[0]).validate(given)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"type": "array", "items": {"type": "string"}}, ""),
        ({"anyOf": [an_object({}), an_object({})]}, ""),
        (an_object({}, anyOf=[an_object({})]), "/anyOf"),
        (an_object({"a": {}}), "/properties/a"),
        (an_object({"a": {"const": [1]}}), "/properties/a"),
        (an_object({"a": True}), "/properties/a"),
        (an_object({"a": {"type": "array"}}), "/properties/a"),
        (an_object({"a": {"properties": {}, "enum": [1]}}), "/properties/a"),
        (an_object({"a": {"type": "object"}}), "/properties/a"),
        (an_object({"a": an_object({}, additionalProperties={"type": "string"})}), "/properties/a"),
        (an_object({"a": an_object({}, patternProperties={"^x": {"type": "string"}})}), "/properties/a"),
        (an_object({}, required=["a"]), "/required"),
        (an_object({"a": {"$ref": "#/properties/b"}}), "/properties/a/$ref"),
        (
            an_object({"a": {"anyOf": [an_object({"k": {"const": 1}}), an_object({"k": {"const": 2}})]}}),
            "/properties/a/anyOf",
        ),
        (an_object({f"k{n}": {"type": "null"} for n in range(5001)}), ""),
    ],
)
def test_what_strict_mode_cannot_express_leaves_it_out(document: dict[str, Any], place: str) -> None:
    schema, reasons = to_strict_schema(document)
    assert schema is None
    assert [(finding.code, finding.path) for finding in reasons] == [("NOT_STRICT", place)]


def test_objects_are_nested_five_levels_deep_and_no_deeper() -> None:
    document = an_object({})
    for _ in range(4):
        document = an_object({"a": document})
    assert strict(document) == (document, [])
    assert to_strict_schema(an_object({"a": document}))[0] is None


def test_the_schema_that_was_given_is_not_changed() -> None:
    before = repr(EVERYTHING)
    to_strict_schema(EVERYTHING)
    assert repr(EVERYTHING) == before
