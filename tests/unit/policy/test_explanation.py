"""Explanations of decisions: the considered rules, and the member that did not hold."""

from __future__ import annotations

from random import Random

import pytest

from peripety.errors import InvalidArgumentError
from peripety.policy.explanation import (
    ConditionOutcome,
    ConsideredRule,
    describe_missing_rule,
    explain_decision,
    list_closed_tools,
)
from support.engine.policies import all_requests, allow, deny, listed_policy, matcher, request, tiny_policy

HOLDS, NOT, UNEVALUATED = ConditionOutcome

POLICY = tiny_policy(
    deny("server", servers=["beta"]),
    deny("clerk", roles=["clerk"]),
    allow(
        "path", tools=["read"], arguments=[matcher("source", "path", "/a"), matcher("source", "path", "/a/b")]
    ),
    deny("size", logic={">": [{"var": "arguments.size"}, 10]}),
    allow("rest", tools=["read"]),
)

POLICY_OF_PATHS = tiny_policy(
    allow("path", tools=["read"], arguments=[matcher("source", "path", "/a")]) | {"principle": "Text."},
    allow("clerk", tools=["read"], roles=["clerk"]),
    deny("other", roles=["other"]),
)


def test_each_rule_names_the_member_that_did_not_hold() -> None:
    assert explain_decision(POLICY, request(path="/a/c", size=1)) == (
        ConsideredRule("server", NOT, "/when/servers"),
        ConsideredRule("clerk", NOT, "/when/roles"),
        ConsideredRule("path", NOT, "/when/arguments/1"),
        ConsideredRule("size", NOT, "/when/logic"),
        ConsideredRule("rest", HOLDS, ""),
    )


def test_rules_after_the_deciding_one_are_not_considered() -> None:
    told = explain_decision(POLICY, request(roles=["clerk"], path="/a/b"))
    assert [one.rule_id for one in told] == ["server", "clerk"]


def test_a_condition_that_cannot_be_evaluated_is_named() -> None:
    told = explain_decision(POLICY, request(path="relative"))
    assert told[2] == ConsideredRule("path", UNEVALUATED, "/when/arguments/0")


def test_an_unknown_tool_has_no_considered_rules_and_a_wrong_request_is_an_error() -> None:
    assert explain_decision(POLICY, request("other")) == ()
    with pytest.raises(InvalidArgumentError):
        explain_decision(POLICY, request(path=float("nan")))


@pytest.mark.parametrize("seed", range(3))
def test_the_explanation_agrees_with_the_decision(seed: int) -> None:
    random = Random(seed)
    policy = listed_policy(random, opaque=True)
    for one in random.sample(all_requests(), 40):
        decided, told = policy.decide(one), explain_decision(policy, one)
        applies = [
            rule.outcome is HOLDS or (rule.outcome is UNEVALUATED and policy.rules[at]["then"] != "allow")
            for at, rule in enumerate(told)
        ]
        assert applies.index(True) == len(told) - 1 if any(applies) else decided.rule_id == ""
        assert all((rule.path == "") is (rule.outcome is HOLDS) for rule in told)
        if decided.rule_id:
            assert told[-1].rule_id == decided.rule_id


def test_a_refusal_names_what_the_rules_of_its_tool_need() -> None:
    assert describe_missing_rule(POLICY_OF_PATHS, request(path="/b")) == (
        'no rule allows this call of alpha/read; it needs that every `source` is below /a ("Text."),'
        " or that the caller has the role clerk"
    )
    assert "as an absolute path" in describe_missing_rule(POLICY_OF_PATHS, request(path="a"))
    assert describe_missing_rule(POLICY_OF_PATHS, request("other")) == (
        "the policy does not know the tool alpha/other"
    )
    assert describe_missing_rule(tiny_policy(deny("all")), request()) == "no rule allows calls of alpha/read"


def test_tools_that_no_rule_opens_are_listed() -> None:
    assert list_closed_tools(POLICY_OF_PATHS) == (("beta", "send"),)
    opened = tiny_policy(deny("all", tools=["read"]), allow("some", servers=["beta"]))
    assert list_closed_tools(opened) == (("alpha", "read"),)
