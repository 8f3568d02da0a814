from __future__ import annotations

import pytest

from peripety.policy.rule_paths import argument_violations

_SCHEMA = {
    "type": "object",
    "properties": {"alpha": {"type": "string", "pattern": "^(a+)+$"}, "beta": {"enum": ["b"]}},
    "required": ["alpha"],
    "additionalProperties": False,
}


def test_a_tool_without_a_schema_refuses_nothing() -> None:
    assert argument_violations(None, {"anything": [1]}) == []


def test_what_a_tool_takes_breaks_nothing() -> None:
    assert argument_violations(_SCHEMA, {"alpha": "aa", "beta": "b"}) == []


def test_everything_that_a_tool_refuses_is_named_with_its_place() -> None:
    found = argument_violations(_SCHEMA, {"beta": "c", "gamma": 1})
    assert {(finding.code, finding.path) for finding in found} == {
        ("MISSING_KEY", ""),
        ("WRONG_VALUE", "/beta"),
        ("UNKNOWN_KEY", "/gamma"),
    }


def test_a_pattern_that_would_search_for_ages_is_matched_in_linear_time() -> None:
    [finding] = argument_violations(_SCHEMA, {"alpha": "a" * 50_000 + "!"})
    assert (finding.code, finding.path) == ("WRONG_FORMAT", "/alpha")


def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused() -> None:
    with pytest.raises(ValueError, match="pattern"):
        argument_violations({"properties": {"alpha": {"pattern": r"^(.)\1$"}}}, {"alpha": "aa"})
