"""End of a run that exceeds its time: finished and skipped measurements are both reported.

Sentences of a written policy that no rule follows.
"""

from __future__ import annotations

import json
from itertools import count
from random import Random

import pytest

from peripety.engine import Policy, compile_policy
from peripety.errors import Severity
from peripety.policy.authoring.scenario_suite import FinalSuite, finalize, uncovered_sentences
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


TEXT = "# Rules\n\nAlpha may be read. Beta must not be. \nBe careful!\n- Gamma is free.\n"


def unnamed(*principles: str) -> list[str]:
    found = uncovered_sentences(
        TEXT,
        [{"id": str(n), "principle": text} for n, text in enumerate(principles)],
    )
    assert all(one.severity is Severity.WARNING and one.remedy for one in found)
    return [one.message.removeprefix("no rule implements: ") for one in found]


def test_every_sentence_without_a_rule_is_named_in_order() -> None:
    assert unnamed() == ["Alpha may be read.", "Beta must not be.", "Be careful!", "Gamma is free."]
    assert unnamed("Beta must not be.", "Be careful!") == ["Alpha may be read.", "Gamma is free."]


def test_a_sentence_is_known_by_its_words_alone_or_among_others() -> None:
    assert unnamed("alpha may be **read**", "Beta must not be. Be careful!", "Gamma is free") == []


def test_a_rule_without_a_principle_follows_nothing() -> None:
    assert len(uncovered_sentences(TEXT, [{"id": "a"}])) == 4


def test_a_long_sentence_is_cut_and_one_that_stands_twice_named_once() -> None:
    (found,) = uncovered_sentences(f"{'long ' * 100}\n\n{'long ' * 100}", [])
    assert found.message.endswith("…")
