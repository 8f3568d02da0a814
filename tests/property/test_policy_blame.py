"""Judges and authors with arbitrary answers, round after round: no other expectation becomes `allow`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from peripety import engine
from peripety.engine.policies.types import Decision, DecisionResult, ToolRequest
from peripety.policy.authoring.judge import JudgeAttribution, resolve_attributions
from peripety.policy.authoring.scenario_merge import apply_corrections, drop_repeated, request_key
from peripety.policy.authoring.scenario_suite import ScenarioSuite
from peripety.policy.types import (
    AnnotatedTool,
    Expectation,
    FaultAttribution,
    ScenarioFeedback,
    ScenarioOrigin,
    ScenarioResult,
    TestScenario,
)

TOOL = AnnotatedTool("a", "read")
POLICY = engine.compile_policy(
    engine.canonicalize(
        {
            "policy_version": "1.0",
            "id": "a",
            "name": "A",
            "tools": [{"server_name": "a", "tool_name": "read"}],
            "rules": [],
        },
    ),
)
REQUESTS = tuple(ToolRequest("a", "read", {"n": number}) for number in range(4))
NAMES = ("first", "second", "third", "fourth")

expectations = st.sampled_from(Expectation)
written = st.lists(
    st.builds(TestScenario, st.sampled_from(NAMES), st.sampled_from(REQUESTS), expectations),
    max_size=6,
)
handwritten = st.lists(
    st.builds(
        TestScenario,
        st.sampled_from(("fifth", "sixth")),
        st.sampled_from(REQUESTS),
        expectations,
        source=st.just(ScenarioOrigin.HANDWRITTEN),
    ),
    max_size=2,
    unique_by=(lambda one: one.description, lambda one: request_key(one.request)),
)
words = st.lists(
    st.builds(
        JudgeAttribution,
        st.sampled_from((*NAMES, "fifth", "sixth", "first (2)", "unheard of")),
        st.sampled_from(FaultAttribution),
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
    said: list[tuple[dict[bytes, Decision], list[JudgeAttribution], list[TestScenario], bool]],
) -> None:
    suite = ScenarioSuite(POLICY, [TOOL], by_hand, lambda _finding: None)
    suite.add(suite.filter_new(first).accepted)
    safe = {_key(one) for one in suite.scenarios if one.expected_decision is not Expectation.ALLOW}
    for decided, attributions, replacements, replace_corrected in said:
        found = resolve_attributions(_failures(suite.scenarios, decided), attributions)
        suite.apply_corrections(found.corrections)
        feedback = ScenarioFeedback(corrections=found.corrections)
        suite.replace(feedback, replacements, replace_corrected=replace_corrected)
        allowed = {_key(one) for one in suite.scenarios if one.expected_decision is Expectation.ALLOW}
        assert not allowed & safe
        safe |= {*map(_key, suite.scenarios)} - allowed
        assert safe <= {_key(one) for one in (*suite.scenarios, *suite.replaced)}
        assert [one for one in suite.scenarios if one.source is ScenarioOrigin.HANDWRITTEN] == by_hand
        assert len({*map(_key, suite.scenarios)}) == len(suite.scenarios)


@given(written, decisions, words)
def test_every_failure_that_is_not_put_right_is_a_problem_of_the_rules(
    first: list[TestScenario],
    decided: dict[bytes, Decision],
    attributions: list[JudgeAttribution],
) -> None:
    suite = drop_repeated(first)
    found = resolve_attributions(_failures(suite, decided), attributions)
    after = apply_corrections(suite, found.corrections)
    still = {one.scenario.description for one in _failures(after, decided)}
    assert {problem.description for problem in found.problems} == still


def _key(scenario: TestScenario) -> bytes:
    return request_key(scenario.request)


def _failures(suite: tuple[TestScenario, ...], decided: dict[bytes, Decision]) -> list[ScenarioResult]:
    results = (
        ScenarioResult(
            one,
            DecisionResult(decided[request_key(one.request)], "r", by_invariant=False, reasons=()),
        )
        for one in suite
    )
    return [result for result in results if not result.passed]
