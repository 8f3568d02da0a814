from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import canonicalize, compile_policy
from peripety.engine._reference.policy import ReferencePolicy as CorePolicy
from peripety.engine.policies.policy import Policy
from peripety.engine.policies.types import ToolRequest
from peripety.errors import InvalidArgumentError
from peripety.policy.mutation.operators import iter_mutations, mutated_rules
from peripety.policy.types import Expectation, TestScenario
from peripety.policy.verification.coverage import EvaluatedSuite
from support.engine.policies import allow, deny, escalate, request, tiny_policy
from support.engine.policy_generators import hostile_requests, random_policy, random_requests
from support.policy.policies import expecting, scenario

if TYPE_CHECKING:
    from collections.abc import Mapping


RULES = (deny("big", logic={">": [{"var": "arguments.size"}, 10]}), allow("rest", servers=["alpha"]))


def test_a_scenario_passes_when_its_expectation_is_met() -> None:
    policy = tiny_policy(*RULES, escalate("send", tools=["send"]))
    suite = EvaluatedSuite(
        policy,
        [
            scenario("right", request(size=11), "deny"),
            scenario("wrong", request(size=10), "deny"),
            scenario("any refusal will do", request(size=11), "not_allow"),
            scenario("as an escalation does", request("send"), "not_allow"),
            scenario("which is no denial", request("send"), "deny"),
            scenario("an unknown tool is denied", request("other"), "deny"),
        ],
    )
    assert suite.passed == 0b101101


def test_only_what_passes_can_notice_a_change() -> None:
    policy = tiny_policy(*RULES)
    suite = EvaluatedSuite(
        policy,
        [scenario("right", request(size=11), "deny"), scenario("wrong", request(size=11), "allow")],
    )
    assert [*suite.failing_by_change([{0: None}])] == [0b01]


def test_a_denial_and_an_escalation_are_the_same_to_who_wants_anything_but_allow() -> None:
    policy = tiny_policy(*RULES)
    suite = EvaluatedSuite(policy, [scenario("either", request(size=11), "not_allow")])
    assert [
        *suite.failing_by_change([{0: {**RULES[0], "then": "escalate"}}, {0: {**RULES[0], "then": "allow"}}]),
    ] == [
        0,
        1,
    ]


def test_without_scenarios_nothing_is_noticed() -> None:
    suite = EvaluatedSuite(tiny_policy(*RULES), [])
    assert (suite.passed, [*suite.failing_by_change([{0: None}])]) == (0, [0])


def test_a_request_that_is_none_is_refused() -> None:
    broken = TestScenario("broken", ToolRequest("alpha", "read", {"a": 2**60}), Expectation.DENY)
    with pytest.raises(InvalidArgumentError, match="NUMBER_RANGE"):
        EvaluatedSuite(tiny_policy(*RULES), [broken])


def _unchecked(spec: Mapping[str, Any]) -> Policy:
    """A policy whose rules may name what none of its tools has, as those of mutants do."""
    document = canonicalize(spec)
    return Policy(document, CorePolicy(document))


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_rule_is_noticed_by_exactly_those_whom_a_policy_compiled_with_it_decides_otherwise(
    seed: int,
) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    requests = [*random_requests(random, spec, 60), *hostile_requests(random, spec, 60)]
    scenarios = expecting(policy, *requests)
    changes = [*iter_mutations(policy)]
    noticed = [*EvaluatedSuite(policy, scenarios).failing_by_change(change.rules for change in changes)]
    invariants = len(spec["invariants"])
    for number in random.sample(range(len(changes)), min(40, len(changes))):
        rules = mutated_rules(policy.rules, changes[number])[invariants:]
        decided = _unchecked({**spec, "rules": rules}).decide_many(requests)
        assert noticed[number] == sum(
            1 << index
            for index, (wanted, found) in enumerate(zip(scenarios, decided, strict=True))
            if not wanted.expected_decision.is_met_by(found.decision)
        ), changes[number].mutant_id
