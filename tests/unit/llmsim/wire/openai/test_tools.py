from __future__ import annotations

from typing import Any

import pytest

from peripety.llmsim.wire.openai.tools import schema_fault

STRING = {"type": "string"}
REQUIRED = "'required' is required to be supplied and to be an array including every key in properties."


def an_object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        an_object(),
        {"type": "object", "additionalProperties": False},
        an_object(a=STRING, b={"type": ["string", "null"]}),
        an_object(a={"type": "array", "items": an_object(b=STRING)}),
        an_object(a={"anyOf": [an_object(b=STRING), {"type": "null"}]}),
        {**an_object(a={"$ref": "#/$defs/b"}), "$defs": {"b": an_object(c=STRING)}},
        an_object(a={"enum": ["x", "y"]}, b={"const": 1}),
    ],
)
def test_strict_schemas_have_no_fault(schema: dict[str, Any]) -> None:
    assert schema_fault(schema) is None


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({}, "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."),
        (STRING, "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'."),
        (
            {**an_object(), "additionalProperties": True},
            "In context=(), 'additionalProperties' is required to be supplied and to be false.",
        ),
        ({**an_object(a=STRING), "required": []}, f"In context=(), {REQUIRED} Missing 'a'."),
        (
            {**an_object(), "required": ["a"]},
            f"In context=(), {REQUIRED} Extra required key 'a' supplied.",
        ),
        (
            an_object(a={"type": "object", "properties": {}}),
            (
                "In context=('properties', 'a'), 'additionalProperties' is required to be supplied and to be "
                "false."
            ),
        ),
        (
            an_object(a={"type": "array", "items": {**an_object(b=STRING), "required": []}}),
            f"In context=('properties', 'a', 'items'), {REQUIRED} Missing 'b'.",
        ),
        (
            {**an_object(), "$defs": {"b": {**an_object(), "additionalProperties": True}}},
            "In context=('$defs', 'b'), 'additionalProperties' is required to be supplied and to be false.",
        ),
        (
            an_object(a={"anyOf": [STRING, {"type": "array"}]}),
            "In context=('properties', 'a', 'anyOf', '1'), array schema missing items.",
        ),
        (an_object(a={"oneOf": [STRING]}), "In context=('properties', 'a'), 'oneOf' is not permitted."),
        (an_object(a=True), "In context=('properties', 'a'), the schema is not an object."),
    ],
)
def test_a_fault_is_told_with_its_place(schema: dict[str, Any], message: str) -> None:
    assert schema_fault(schema) == message


def test_schemas_are_nested_ten_levels_deep_at_most() -> None:
    schema = an_object()
    for _ in range(10):
        schema = an_object(a=schema)
    assert schema_fault(schema) is None
    assert "nested deeper than 10 levels" in str(schema_fault(an_object(a=schema)))
