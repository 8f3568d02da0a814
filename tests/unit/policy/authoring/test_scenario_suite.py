"""End of a run that exceeds its time: finished and skipped measurements are both reported."""

from __future__ import annotations

import json
from itertools import count
from random import Random

import pytest

from peripety.engine import Policy, compile_policy
from peripety.policy.authoring.scenario_suite import FinalSuite, finalize
from peripety.policy.mutation.operators import iter_mutations
from peripety.policy.types import ScenarioOrigin, TestScenario
from support.engine.policies import allow, deny, request, tiny_policy
from support.engine.policy_generators import random_policy, random_requests
from support.policy.policies import expecting, scenario

POLICY = tiny_policy(
    deny("big", logic={">": [{"var": "arguments.size"}, 10]}),
    allow("read", tools=["read"], roles=["x", "y"]),
)
SUITE = [
    scenario("by hand", request(), "deny", source=ScenarioOrigin.HANDWRITTEN),
    *expecting(POLICY, request(size=11), request(roles=["x"]), request(roles=["x"], size=1)),
]


def late_after(asked: int, policy: Policy = POLICY, suite: list[TestScenario] = SUITE) -> FinalSuite:
    """Finish a suite with a deadline that passes after this number of checks."""
    times = count(1)
    return finalize(policy, suite, is_late=lambda: next(times) > asked)


def pieces(policy: Policy, suite: list[TestScenario]) -> int:
    """Return the number of deadline checks."""
    times = count()

    def is_late() -> bool:
        next(times)
        return False

    assert not finalize(policy, suite, is_late=is_late).skipped
    return next(times)


def test_without_any_time_all_scenarios_stay_and_are_run() -> None:
    done = late_after(0)
    assert done.scenarios == tuple(SUITE)
    assert not done.generated
    assert [result.passed for result in done.report.results] == [True] * len(SUITE)
    assert done.report.mutation is not None
    assert (done.report.mutation.killed, done.report.mutation.survived) == (0, 0)
    total = len([*iter_mutations(POLICY)])
    assert done.skipped[0] == "the scenarios that add coverage"
    assert done.skipped[-1] == f"{total} of {total} mutants"


def test_coverage_without_time_to_explore_calls_nothing_unreachable() -> None:
    policy = tiny_policy(allow("all", tools=["read"]), deny("never", tools=["read"]))
    suite = expecting(policy, request())
    whole, hasty = finalize(policy, suite), late_after(0, policy, suite)
    assert any(one.unreachable for one in whole.report.coverage)
    assert not any(one.unreachable for one in hasty.report.coverage)
    assert any("uncovered targets" in what for what in hasty.skipped)


@pytest.mark.parametrize("seed", range(3))
def test_whenever_the_time_ends_what_is_told_holds(seed: int) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    suite = expecting(policy, *random_requests(random, spec, 10))
    whole = finalize(policy, suite)
    for asked in range(pieces(policy, suite) + 1):
        done = late_after(asked, policy, suite)
        assert [result.scenario for result in done.report.results] == [*done.scenarios]
        assert not done.report.failures
        if done.skipped:
            for known, full in zip(done.report.coverage, whole.report.coverage, strict=True):
                assert {*known.unreachable} <= {*full.unreachable}
        else:
            assert done == whole


def test_with_time_for_all_of_it_nothing_is_left() -> None:
    assert late_after(pieces(POLICY, SUITE)) == finalize(POLICY, SUITE)
