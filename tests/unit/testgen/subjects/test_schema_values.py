"""Values of schemas: valid ones at the boundaries, and invalid ones with the keyword that rejects them."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.engine.schema_validation import validate_against_schema
from peripety.testgen.subjects.schema_values import invalid_values, valid_values

PERSON = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z]{2,3}$"},
        "age": {"$ref": "#/components/schemas/Age"},
        "kind": {"enum": ["a", "b"]},
    },
    "components": {"schemas": {"Age": {"type": "integer", "minimum": 18, "exclusiveMaximum": 100}}},
}


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 20}, [1, 2, 20, 19]),
        ({"type": "string", "minLength": 2, "maxLength": 5}, ["ab", "aaaaa"]),
        ({"type": "array", "minItems": 1, "items": {"type": "boolean"}}, [[True]]),
        ({"type": "string", "format": "date"}, ["2020-02-29"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [None]),
        ({"allOf": [{"properties": {"a": {"const": 1}}}, {"required": ["a"]}]}, [{"a": 1}]),
    ],
)
def test_valid_values_include_the_boundaries(schema: dict[str, Any], wanted: list[Any]) -> None:
    found = valid_values(schema)
    assert all(value in found for value in wanted)
    assert not any(validate_against_schema(schema, value) for value in found)


def test_each_keyword_is_broken_once() -> None:
    broken = dict(invalid_values(PERSON))
    assert {*broken} == {
        "/type",
        "/required/name",
        "/properties/name/type",
        "/properties/name/pattern",
        "/properties/age/type",
        "/properties/age/minimum",
        "/properties/age/exclusiveMaximum",
        "/properties/kind/enum",
        "/additionalProperties",
    }
    assert broken["/properties/age/minimum"]["age"] == 17
    assert broken["/properties/age/exclusiveMaximum"]["age"] == 100
    assert all(validate_against_schema(PERSON, value) for value in broken.values())


def test_a_recursive_schema_ends() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert {} in valid_values(tree)
