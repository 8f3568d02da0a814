"""How sequences of rules differ, for the record."""

from __future__ import annotations

from peripety.policy.rule_paths import diff_rules
from peripety.policy.types import RulePatchKind
from support.engine.policies import rule


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
