"""Remaining conditions of rules for calls with known values."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import Decision, ToolRequest, compile_policy
from peripety.policy.partial_evaluation import decide_partially
from support.engine.policies import (
    all_requests,
    allow,
    deny,
    escalate,
    listed_policy,
    matching,
    policy_document,
    tiny_policy,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine import Policy
    from peripety.policy.partial_evaluation import PartialDecision

_REQUESTS = all_requests()


def _decide(
    policy: Policy,
    tool_name: str,
    known: dict[str, Any],
    roles: Sequence[str] | None = None,
    server_name: str = "alpha",
) -> PartialDecision:
    request = ToolRequest(server_name, tool_name, known, tuple(roles or ()))
    return decide_partially(policy, request, has_open_roles=roles is None)


def _remaining_policy(policy: Policy, partial: PartialDecision) -> Policy:
    """A policy of the remaining rules; their numbers are their ids."""
    rules = [
        {
            "id": f"r{number}",
            "when": {"servers": ["alpha"], "tools": ["a"], **one.condition},
            "then": one.decision.value,
            "reason": "a",
        }
        for number, one in enumerate(partial.rules)
    ]
    parts = {name: policy.spec[name] for name in ("tools", "lists") if name in policy.spec}
    return compile_policy(policy_document(**parts, rules=rules))


@pytest.mark.slow_after(6, reason="compares many calls")
@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_remaining_conditions_decide_like_the_whole_policy(seed: int, *, opaque: bool) -> None:
    random = Random(seed)
    policy = listed_policy(random, opaque=opaque)
    one = random.choice(_REQUESTS)
    known = {name: value for name, value in one.arguments.items() if random.random() < 0.5}
    roles = one.roles if random.random() < 0.5 else None
    partial = _decide(policy, "a", known, roles)
    rest = _remaining_policy(policy, partial)
    ids = {f"r{number}": rule.rule_id for number, rule in enumerate(partial.rules)} | {"": ""}
    sent = [name for name in known if name in partial.read_arguments]
    calls = [call for call in random.sample(_REQUESTS, 400) if (roles is None or call.roles == roles)]
    whole = [ToolRequest("alpha", "a", {**call.arguments, **known}, call.roles) for call in calls]
    others = [
        ToolRequest(
            "alpha",
            "a",
            {name: value for name, value in call.arguments.items() if name not in known or name in sent},
            call.roles if roles is None else (),
        )
        for call in whole
    ]
    expected = [(one.decision, one.rule_id) for one in policy.decide_many(whole)]
    assert [(one.decision, ids[one.rule_id]) for one in rest.decide_many(others)] == expected
    if partial.decision is not None:
        assert {decision for decision, _ in expected} <= {partial.decision}


def _describe(policy: Policy, known: dict[str, Any], roles: list[str] | None = None) -> list[str]:
    return [rule.text for rule in _decide(policy, "read", known, roles).rules]


POLICY = tiny_policy(
    deny("a", arguments=[matching("/etc", quantifier="any", role="source")]),
    escalate("b", tools=["read"], logic={">": [{"var": "arguments.size"}, 100]}),
    allow(
        "c",
        roles=["clerk"],
        arguments=[matching("/srv", role="source")],
        logic={
            "and": [{"in": [{"var": "arguments.mode"}, ["a", "b"]]}, {"!": [{"missing": ["arguments.size"]}]}]
        },
    ),
)


def test_all_rules_remain_without_known_values() -> None:
    partial = _decide(POLICY, "read", {})
    assert (partial.decision, partial.read_arguments) == (None, ())
    assert [rule.text for rule in partial.rules] == [
        "Deny a call of alpha/read if a `source` is below /etc.",
        "Escalate a call of alpha/read if `size` is more than 100.",
        (
            "Allow a call of alpha/read if the caller has the role clerk and every `source` is below /srv and"
            ' (`mode` is "a" or "b" and `size` is given).'
        ),
    ]
    assert partial.rules[0].condition == {"arguments": [matching("/etc", quantifier="any", role="source")]}


def test_known_values_drop_conditions_and_rules() -> None:
    assert _describe(POLICY, {"size": 5, "mode": "a"}, ["clerk"]) == [
        "Deny a call of alpha/read if a `source` is below /etc.",
        "Allow a call of alpha/read if every `source` is below /srv.",
    ]
    assert _describe(POLICY, {"mode": "c"}) == [
        "Deny a call of alpha/read if a `source` is below /etc.",
        "Escalate a call of alpha/read if `size` is more than 100.",
    ]
    assert _describe(POLICY, {"path": "/etc/a", "paths": []}) == ["Deny a call of alpha/read."]
    partial = _decide(POLICY, "read", {"path": "/srv/a"})
    assert partial.read_arguments == ("path",)


def test_the_decision_is_told_if_it_is_always_the_same() -> None:
    assert _decide(POLICY, "send", {}, server_name="beta").decision is Decision.DENY
    assert _decide(POLICY, "unknown", {}).rules[0].rule_id == "structural-unknown-tool"
    assert _decide(POLICY, "read", {"path": "/etc", "paths": []}).decision is Decision.DENY
    everything = tiny_policy(allow("a", logic={}))
    assert _decide(everything, "read", {}).decision is Decision.ALLOW


def test_context_stays_open_when_the_roles_are_known() -> None:
    document = policy_document(
        context={"office": {"kind": "time", "start": "08:00", "end": "18:00"}},
        rules=[allow("a", roles=["context.office", "clerk"]), allow("b", roles=["boss"])],
    )
    partial = _decide(compile_policy(document), "t", {}, ["other"], "s")
    assert [(rule.rule_id, rule.condition) for rule in partial.rules] == [
        ("a", {"roles": ["context.office"]})
    ]


def test_a_condition_that_cannot_be_evaluated_keeps_its_effect() -> None:
    broken = {"<": [{"var": "arguments.mode"}, 5]}
    stopping = tiny_policy(deny("a", logic=broken), allow("b", logic={}))
    assert _describe(stopping, {"mode": "x"}) == ["Deny a call of alpha/read."]
    allowing = tiny_policy(allow("a", logic=broken), escalate("b", logic={}))
    assert _describe(allowing, {"mode": "x"}) == ["Escalate a call of alpha/read."]
    never = tiny_policy(deny("a", arguments=[matching("/a", role="source")], logic=broken))
    assert _describe(never, {"mode": "7"}) == [
        "Deny a call of alpha/read if every `source` is below /a, but only if that cannot be evaluated.",
    ]
