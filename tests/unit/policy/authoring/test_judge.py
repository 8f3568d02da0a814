"""Resolution of a judge's fault attributions."""

from __future__ import annotations

from itertools import product

import pytest

from peripety.engine.policies.types import Decision, DecisionResult
from peripety.policy.authoring.judge import JudgeAttribution, resolve_attributions
from peripety.policy.types import Expectation, FaultAttribution, ScenarioOrigin, ScenarioResult
from support.policy.models import generated_scenario


def failure(
    expected: Expectation | str,
    actual: str,
    source: ScenarioOrigin = ScenarioOrigin.GENERATED,
    name: str = "one",
) -> ScenarioResult:
    decided = DecisionResult(Decision(actual), "r", by_invariant=False, reasons=("why",))
    return ScenarioResult(generated_scenario(name, expected, source=source), decided)


def says(blame: FaultAttribution | str, corrected: str | None = None, name: str = "one") -> JudgeAttribution:
    return JudgeAttribution(
        name,
        FaultAttribution(blame),
        "I say so",
        None if corrected is None else Expectation(corrected),
    )


def test_no_word_of_a_judge_makes_a_scenario_expect_allow_that_did_not() -> None:
    for expected, actual, blame, word in product(
        Expectation,
        Decision,
        FaultAttribution,
        (None, *Expectation),
    ):
        if expected is Expectation.ALLOW or expected.is_met_by(actual):
            continue
        said = JudgeAttribution("one", blame, "I say so", word)
        found = resolve_attributions([failure(expected, actual.value)], [said])
        assert all(one.corrected_decision is not Expectation.ALLOW for one in found.corrections)
        if actual is Decision.ALLOW:
            (problem,) = found.problems
            assert problem.expected_decision is not Expectation.ALLOW


@pytest.mark.parametrize("blame", ["scenario", "both"])
def test_a_judgement_that_wants_allow_is_put_aside_and_the_rules_are_to_blame(blame: str) -> None:
    found = resolve_attributions([failure("deny", "allow")], [says(blame, "allow")])
    (judgement,) = found.judgements
    assert judgement.overruled
    assert not found.corrections
    assert [one.description for one in found.problems] == ["one"]
    ((contested, opinion),) = found.contested
    assert (contested.expected_decision, opinion.corrected_decision) == (Expectation.DENY, Expectation.ALLOW)


@pytest.mark.parametrize(
    ("expected", "right"),
    [
        ("deny", "escalate"),
        ("escalate", "deny"),
        ("allow", "deny"),
        ("allow", "escalate"),
        ("allow", "not_allow"),
        ("not_allow", "deny"),
        ("deny", "not_allow"),
    ],
)
def test_corrections_that_stay_on_the_safe_side_stand(expected: str, right: str) -> None:
    actual = "escalate" if right == "escalate" else "deny"
    actual = {"allow": actual, "deny": "escalate", "escalate": "deny", "not_allow": "allow"}[expected]
    found = resolve_attributions([failure(expected, actual)], [says("scenario", right)])
    (correction,) = found.corrections
    assert (correction.original_decision.value, correction.corrected_decision.value) == (expected, right)
    assert correction.corrected_reasoning == "I say so"
    assert not found.judgements[0].overruled


def test_a_corrected_scenario_that_still_fails_is_a_problem_of_the_rules_as_it_is_now() -> None:
    found = resolve_attributions([failure("escalate", "allow")], [says("both", "deny")])
    (problem,) = found.problems
    assert problem.expected_decision is Expectation.DENY
    assert not resolve_attributions([failure("allow", "deny")], [says("scenario", "deny")]).problems


@pytest.mark.parametrize("blame", ["scenario", "both"])
def test_blame_on_a_handwritten_scenario_is_a_warning_and_a_problem_of_the_rules(blame: str) -> None:
    found = resolve_attributions(
        [failure("allow", "deny", ScenarioOrigin.HANDWRITTEN)],
        [says(blame, "deny")],
    )
    assert [warning.code for warning in found.warnings] == ["HANDWRITTEN_BLAMED"]
    assert found.judgements[0].overruled
    assert not found.corrections
    assert found.problems[0].expected_decision is Expectation.ALLOW


def test_a_failure_without_a_word_is_a_problem_of_the_rules() -> None:
    found = resolve_attributions([failure("deny", "allow")], [])
    assert (len(found.problems), found.judgements) == (1, ())


def test_blame_on_a_rule_stands() -> None:
    found = resolve_attributions([failure("deny", "allow")], [says("rule", "allow")])
    assert (len(found.problems), found.corrections, found.contested) == (1, (), ())
    assert not found.judgements[0].overruled


@pytest.mark.parametrize("word", [None, "deny"])
def test_blame_on_a_scenario_that_says_nothing_new_is_put_aside(word: str | None) -> None:
    found = resolve_attributions([failure("deny", "allow")], [says("scenario", word)])
    assert found.judgements[0].overruled
    assert len(found.problems) == 1


def test_words_about_what_did_not_fail_are_not_heard_and_of_two_words_the_first_is() -> None:
    words = [says("scenario", "deny", "other"), says("rule"), says("scenario", "deny")]
    found = resolve_attributions([failure("allow", "deny")], words)
    assert [judgement.blame for judgement in found.judgements] == [FaultAttribution.RULE]
    assert not found.corrections
