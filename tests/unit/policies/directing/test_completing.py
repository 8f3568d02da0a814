from __future__ import annotations

import json
from random import Random

import pytest

from peripety.engine import compile_policy
from peripety.policy.coverage_generation.gap_scenarios import complete_suite, generate_for_gaps
from peripety.policy.coverage_generation.minimize import minimal_suite
from peripety.policy.types import ScenarioOrigin, TestScenario
from peripety.policy.verification.verify import verify
from support.engine.policies import allow, deny, request, tiny_policy
from support.engine.policy_generators import random_policy, random_requests
from support.policy.policies import expecting, scenario

POLICY = tiny_policy(
    deny("big", logic={">": [{"var": "arguments.size"}, 10]}),
    allow("read", tools=["read"], roles=["x", "y"]),
)


def test_a_complete_suite_kills_and_reaches_everything_that_can_be() -> None:
    report = verify(POLICY, complete_suite(POLICY, []), mutation=True)
    assert [found.uncovered for found in report.coverage] == [(), (), ()]
    assert report.mutation is not None
    assert (report.mutation.survived, report.mutation.score) == (0, 1.0)


def test_handwritten_scenarios_and_what_fails_stay() -> None:
    by_hand = scenario("by hand", request(), "deny", source=ScenarioOrigin.HANDWRITTEN)
    again = scenario("again", request(), "deny", source=ScenarioOrigin.HANDWRITTEN)
    wrong = scenario("wrong", request(), "allow")
    assert complete_suite(POLICY, [wrong, by_hand, again])[:3] == (by_hand, again, wrong)


def test_written_scenarios_that_do_as_much_are_taken_before_directed_ones() -> None:
    made = complete_suite(POLICY, [])
    written = [scenario(f"w{n}", one.request, one.expected_decision.value) for n, one in enumerate(made)]
    assert {one.source for one in complete_suite(POLICY, written)} == {ScenarioOrigin.GENERATED}


def test_every_scenario_has_a_description_of_its_own() -> None:
    names = [
        one.description for one in complete_suite(POLICY, expecting(POLICY, request(), request(size=11)))
    ]
    assert all(names)
    assert len({*names}) == len(names)


def test_nothing_is_gained_by_completing_again() -> None:
    made = complete_suite(POLICY, [])
    assert complete_suite(POLICY, made) == made == complete_suite(POLICY, [])


@pytest.mark.parametrize("seed", range(3))
def test_it_does_what_covering_does_with_hardly_ever_more_scenarios(seed: int) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    scenarios = expecting(policy, *random_requests(random, spec, 20))
    made = [one for one in generate_for_gaps(policy, scenarios) if isinstance(one, TestScenario)]
    before = minimal_suite(policy, [*scenarios, *made])
    after = complete_suite(policy, scenarios)
    assert len(after) <= len(before) + 1
    old, new = verify(policy, before, mutation=True), verify(policy, after, mutation=True)
    assert not new.failures
    assert old.mutation is not None
    assert new.mutation is not None
    assert new.mutation.score >= old.mutation.score
    assert [found.covered for found in new.coverage] >= [found.covered for found in old.coverage]
