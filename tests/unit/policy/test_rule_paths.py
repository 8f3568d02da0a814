"""Differences between two rule sequences, for the record."""

from __future__ import annotations

import pytest

from peripety.policy.rule_paths import argument_violations, diff_rules
from peripety.policy.types import RulePatchKind
from support.engine.policies import rule

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


def test_rules_that_are_gone_come_first_and_each_change_says_where_and_why() -> None:
    before = [rule("a"), rule("b"), rule("c")]
    after = [rule("b"), rule("c", "deny"), rule("d")]
    found = [
        (one.kind, one.rule_id, one.position, one.reasoning)
        for one in diff_rules(before, after, "written anew", first=5)
    ]
    assert found == [
        (RulePatchKind.DELETE, "a", 5, "written anew"),
        (RulePatchKind.UPDATE, "c", 6, "written anew"),
        (RulePatchKind.ADD, "d", 7, "written anew"),
    ]


def test_a_rule_that_only_stands_elsewhere_is_a_change_as_the_order_decides() -> None:
    (moved,) = diff_rules([rule("a"), rule("b")], [rule("b"), rule("a")], "written anew")
    assert moved.kind is RulePatchKind.UPDATE
    assert moved.before == moved.after
    assert moved.reasoning == "written anew; it was moved among the others"


def test_the_same_rules_have_no_changes() -> None:
    assert not [*diff_rules([rule("a")], [rule("a")])]
