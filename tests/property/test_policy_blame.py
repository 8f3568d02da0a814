"""Judges and authors that say anything, round after round: nobody talks an expectation into `allow`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from peripety import sim
from peripety.policies.compiling.blame import Attribution, ruling
from peripety.policies.compiling.merging import corrected, request_key, without_repetition
from peripety.policies.compiling.suite import Suite
from peripety.policies.model import (
    Blame,
    Decided,
    Decision,
    Expectation,
    ScenarioFeedback,
    ScenarioResult,
    ScenarioSource,
    TestScenario,
    ToolAnnotation,
    ToolRequest,
)

TOOL = ToolAnnotation("a", "read")
POLICY = sim.compile_policy(
    sim.canonical(
        {
            "policy_version": "1.0",
            "id": "a",
            "name": "A",
            "tools": [{"server_name": "a", "tool_name": "read"}],
            "rules": [],
        }
    )
)
REQUESTS = tuple(ToolRequest("a", "read", {"n": number}) for number in range(4))
NAMES = ("first", "second", "third", "fourth")

expectations = st.sampled_from(Expectation)
written = st.lists(
    st.builds(TestScenario, st.sampled_from(NAMES), st.sampled_from(REQUESTS), expectations), max_size=6
)
handwritten = st.lists(
    st.builds(
        TestScenario,
        st.sampled_from(("fifth", "sixth")),
        st.sampled_from(REQUESTS),
        expectations,
        source=st.just(ScenarioSource.HANDWRITTEN),
    ),
    max_size=2,
    unique_by=(lambda one: one.description, lambda one: request_key(one.request)),
)
words = st.lists(
    st.builds(
        Attribution,
        st.sampled_from((*NAMES, "fifth", "sixth", "first (2)", "unheard of")),
        st.sampled_from(Blame),
        st.just("so it says"),
        st.none() | expectations,
    ),
    max_size=8,
)
decisions = st.fixed_dictionaries({request_key(each): st.sampled_from(Decision) for each in REQUESTS})
rounds = st.lists(st.tuples(decisions, words, written, st.booleans()), min_size=1, max_size=4)


@given(handwritten, written, rounds)
def test_whatever_is_said_round_after_round_no_request_that_must_not_be_allowed_comes_to_expect_it(
    by_hand: list[TestScenario],
    first: list[TestScenario],
    said: list[tuple[dict[bytes, Decision], list[Attribution], list[TestScenario], bool]],
) -> None:
    suite = Suite(POLICY, [TOOL], by_hand, lambda _finding: None)
    suite.take(suite.sift(first).kept)
    safe = {_key(one) for one in suite.scenarios if one.expected_decision is not Expectation.ALLOW}
    for decided, attributions, replacements, replace_corrected in said:
        found = ruling(_failures(suite.scenarios, decided), attributions)
        suite.correct(found.corrections)
        feedback = ScenarioFeedback(corrections=found.corrections)
        suite.replace(feedback, replacements, replace_corrected=replace_corrected)
        allowed = {_key(one) for one in suite.scenarios if one.expected_decision is Expectation.ALLOW}
        assert not allowed & safe
        safe |= {*map(_key, suite.scenarios)} - allowed
        assert safe <= {_key(one) for one in (*suite.scenarios, *suite.replaced)}
        assert [one for one in suite.scenarios if one.source is ScenarioSource.HANDWRITTEN] == by_hand
        assert len({*map(_key, suite.scenarios)}) == len(suite.scenarios)


@given(written, decisions, words)
def test_every_failure_that_is_not_put_right_is_a_problem_of_the_rules(
    first: list[TestScenario], decided: dict[bytes, Decision], attributions: list[Attribution]
) -> None:
    suite = without_repetition(first)
    found = ruling(_failures(suite, decided), attributions)
    after = corrected(suite, found.corrections)
    still = {one.scenario.description for one in _failures(after, decided)}
    assert {problem.description for problem in found.problems} == still


def _key(scenario: TestScenario) -> bytes:
    return request_key(scenario.request)


def _failures(suite: tuple[TestScenario, ...], decided: dict[bytes, Decision]) -> list[ScenarioResult]:
    results = (
        ScenarioResult(one, Decided(decided[request_key(one.request)], "r", by_invariant=False, reasons=()))
        for one in suite
    )
    return [result for result in results if not result.passed]
