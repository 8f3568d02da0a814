"""What can be said of a value before its end, by the schema of the whole."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.gateway.structured_output.validator import PrefixMismatchError, validate_prefix

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "whole": {"type": "integer"},
        "ratio": {"type": "number"},
        "note": {"type": ["string", "null"]},
        "tree": {"$ref": "#/$defs/tree"},
        "pair": {"prefixItems": [{"type": "string"}], "items": {"type": "boolean"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "both": {"allOf": [{"type": "object"}, {"properties": {"x": {"type": "string"}}}]},
    },
    "additionalProperties": False,
    "$defs": {
        "tree": {"type": "object", "properties": {"below/above": {"$ref": "#/$defs/leaf~1s"}}},
        "leaf/s": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"whole": 1.0, "ratio": 2},
        {"note": None},
        {"tree": {"below/above": [{"below/above": []}]}},
        {"pair": ["a", True, False]},
        {"either": 7},
        {"both": {"x": "a", "y": 1}},
    ],
)
def test_a_beginning_that_may_become_valid_is_kept(value: Any) -> None:
    assert validate_prefix(SCHEMA, value) == value


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"whole": 1.5},
        {"whole": True},
        {"ratio": "1"},
        {"ratio": float("inf")},
        {"note": 1},
        {"other": 1},
        {"tree": {"below/above": [{"below/above": {}}]}},
        {"pair": [1]},
        {"pair": ["a", "b"]},
        {"both": {"x": 1}},
    ],
)
def test_a_beginning_that_cannot_is_refused(value: Any) -> None:
    with pytest.raises(PrefixMismatchError):
        validate_prefix(SCHEMA, value)


def test_a_null_that_may_stand_for_a_missing_key_is_left_out() -> None:
    assert validate_prefix(SCHEMA, {"whole": None, "note": None, "either": None, "tree": {"x": None}}) == {
        "note": None,
        "tree": {},
    }


@pytest.mark.parametrize("reference", ["#anchor", "#/$defs/missing", "https://a.example/b", "#"])
def test_what_a_reference_does_not_lead_to_refuses_nothing(reference: str) -> None:
    schema = {"properties": {"a": {"$ref": reference}}}
    assert validate_prefix(schema, {"a": {"b": 1}}) == {"a": {"b": 1}}
