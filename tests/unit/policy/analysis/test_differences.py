from __future__ import annotations

import pytest

from peripety.engine.policies.types import Decision
from peripety.policy.analysis.differences import find_differences
from peripety.policy.types import RulePatchKind
from support.engine.policies import matching, policy_of, rule, tool_with_roles

_IN_A = rule("in-a", "allow", arguments=[matching("/a")])
_IN_B = rule("in-b", "escalate", arguments=[matching("/b")])


def test_a_policy_is_the_same_as_itself() -> None:
    found = find_differences(policy_of(_IN_A, _IN_B), policy_of(_IN_A, _IN_B))
    assert (found.equivalent, found.changes, found.rule_changes, found.findings) == (True, (), (), ())


def test_rules_that_say_the_same_in_other_words_are_equivalent() -> None:
    before = policy_of(rule("r", "allow", arguments=[matching("/a/b", "/a")]), _IN_B)
    after = policy_of(_IN_B, rule("s", "allow", arguments=[matching("/a/c/..")]), rule("rest", "deny"))
    assert find_differences(before, after).equivalent


def test_what_is_newly_allowed_comes_first_then_what_is_newly_stopped() -> None:
    before = policy_of(_IN_A, rule("in-c", "deny", arguments=[matching("/c")]), _IN_B)
    after = policy_of(
        rule("in-a", "escalate", arguments=[matching("/a")]),
        rule("in-c", "escalate", arguments=[matching("/c")]),
        rule("in-b", "allow", arguments=[matching("/b")]),
    )
    found = find_differences(before, after)
    assert found.changes[0].after.decision is Decision.ALLOW
    assert found.changes[1].before.decision is Decision.ALLOW
    assert len({(one.before.rule_id, one.after.rule_id) for one in found.changes}) == len(found.changes)


def test_examples_are_what_both_engines_say() -> None:
    before, after = policy_of(_IN_A, _IN_B), policy_of(_IN_B)
    for change in find_differences(before, after).changes:
        assert before.decide(change.witness) == change.before
        assert after.decide(change.witness) == change.after
        assert change.before.decision is not change.after.decision


def test_no_more_examples_are_given_than_are_wanted() -> None:
    assert len(find_differences(policy_of(_IN_A, _IN_B), policy_of(), max_examples=1).changes) == 1


def test_arguments_that_the_tool_refuses_count_but_others_are_preferred() -> None:
    before = policy_of(rule("r", "allow", logic={"missing": ["arguments.path"]}))
    (refused,) = find_differences(before, policy_of()).changes
    assert not refused.witness.arguments.get("path")
    before = policy_of(rule("r", "allow", logic={"!": [{"===": [{"var": "arguments.amount"}, 5]}]}))
    (accepted,) = find_differences(before, policy_of()).changes
    assert "path" in accepted.witness.arguments


def test_a_tool_that_is_not_there_any_more_is_denied() -> None:
    tools = tool_with_roles(), tool_with_roles("b")
    everything = rule("r", "allow", servers=["alpha"])
    (change,) = find_differences(
        policy_of(everything, tools=tools),
        policy_of(everything, tools=tools[:1]),
    ).changes
    assert change.witness.tool_name == "b"
    assert change.after.by_invariant


def test_other_annotations_make_other_policies() -> None:
    tools = (
        tool_with_roles(),
        tool_with_roles(argument_roles={"/note": "place", "/paths": "places"}),
    )
    before, after = (policy_of(_IN_A, tools=(one,)) for one in tools)
    assert not find_differences(before, after).equivalent


def test_lists_make_other_policies() -> None:
    listed = rule("r", "allow", arguments=[matching("@known")])
    before, after = (
        policy_of(listed, lists={"known": {"kind": "path", "values": values}})
        for values in (["/a"], ["/a", "/b"])
    )
    (change,) = find_differences(before, after).changes
    assert change.after.decision is Decision.ALLOW
    assert str(change.witness.arguments["path"]).startswith("/b")


def test_rules_are_compared_by_their_ids() -> None:
    before = policy_of(_IN_A, _IN_B, rule("c", "deny"))
    after = policy_of(rule("d", "deny"), rule("c", "deny"), _IN_A | {"reason": "Another."})
    changes = [(one.kind, one.rule_id, one.position) for one in find_differences(before, after).rule_changes]
    assert changes == [
        (RulePatchKind.DELETE, "in-b", 1),
        (RulePatchKind.ADD, "d", 0),
        (RulePatchKind.UPDATE, "in-a", 2),
    ]


def test_what_cannot_be_decided_is_said() -> None:
    never = {"==": [{"%": [{"var": "arguments.amount"}, 1]}, 2]}
    found = find_differences(policy_of(rule("r", "allow", logic=never)), policy_of())
    assert not found.equivalent
    assert [one.code for one in found.findings] == ["POLICY_UNDECIDED"]


def test_what_cannot_be_decided_is_said_of_a_tool_that_differs_otherwise_as_well() -> None:
    never = {"==": [{"%": [{"var": "arguments.amount"}, 1]}, 2]}
    before = policy_of(rule("r", "escalate", logic=never), rule("rest", "allow"))
    found = find_differences(before, policy_of())
    assert [one.before.rule_id for one in found.changes] == ["rest"]
    assert [one.code for one in found.findings] == ["POLICY_UNDECIDED"]


@pytest.mark.parametrize("then", ["deny", "escalate"])
def test_what_cannot_be_read_is_told_from_what_does_not_match(then: str) -> None:
    stop = rule("stop", then, arguments=[matching("/a")])
    found = find_differences(policy_of(stop, rule("rest", "allow")), policy_of(rule("rest", "allow")))
    assert found.changes
