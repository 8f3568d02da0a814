"""Expected gain of another round, from the parts seen once and twice and from idle rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.core.mutation_testing import Coverage, MutationScore
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.testgen.events import (
    GenerationProgressed,
    GenerationStop,
    QualityMeasured,
    Reflection,
    ReflectionAction,
    ReflectionCompleted,
    StepOutcome,
    TestAdded,
    TestRan,
)
from peripety.testgen.prompts.user_messages import MAX_LISTED, requested_counts
from peripety.testgen.run.budget import BudgetAccount
from peripety.testgen.run.state import GenerationRound, GenerationState
from peripety.testgen.run.steps import (
    FinishRun,
    ReflectOnCategories,
    RunRounds,
    count_missing,
    expected_gain,
    expects_gain,
    make_stats,
    next_step,
)
from peripety.testgen.types import CaseVerdict, EvaluatedTest, SuiteQuality, TestCase, TestStatus
from support.testgen.fake_run import order


def quality(killed: int, survived: int) -> SuiteQuality:
    return SuiteQuality((), MutationScore(killed, survived, 0), killed)


def after(*rounds: list[set[str]], left: int = 10) -> GenerationState:
    """A run after rounds of tests, by what each test reaches."""
    state = GenerationState(order("alpha"))
    seen: set[str] = set()
    for number, tests in enumerate(rounds, start=1):
        state.apply(GenerationProgressed(state.phase, "alpha", number, "begins"))
        for index, reached in enumerate(tests):
            test = TestCase(f"alpha_{number}_{index}", "alpha", "given", round=number)
            examined = EvaluatedTest(TestStatus.PASSED, 5, kills=frozenset(reached))
            state.apply(TestAdded(test))
            new = tuple(sorted(reached - seen))
            state.apply(TestRan(test.test_id, CaseVerdict(examined, bool(new), new_kills=new)))
            seen |= reached
        state.apply(GenerationProgressed(state.phase, "alpha", number, "is over", StepOutcome.DONE))
    state.apply(QualityMeasured(quality(len(seen), left)))
    return state


def test_without_a_measurement_nothing_is_said() -> None:
    assert count_missing(None) is None
    assert count_missing(SuiteQuality()) is None
    assert expects_gain(GenerationState(order("alpha"))) is None


def test_what_is_left_are_survivors_and_uncovered_targets() -> None:
    assert (
        count_missing(SuiteQuality((Coverage("part", 3, 5), Coverage("end", 1, 1)), MutationScore(4, 6, 1)))
        == 8
    )


def test_where_nothing_is_left_nothing_is_to_be_gained() -> None:
    assert expects_gain(after([{"a"}], left=0)) is False


def test_a_round_that_found_something_lets_the_run_go_on() -> None:
    assert expects_gain(after([{"a"}, {"a"}], [{"a"}, {"b"}])) is True


def test_an_idle_round_ends_it_where_all_is_seen_again_and_again() -> None:
    assert expects_gain(after([{"a", "b"}, {"a", "b"}], [{"a", "b"}])) is False


def test_an_idle_round_does_not_end_it_where_almost_all_was_seen_once() -> None:
    found = [{str(number), str(-number)} for number in range(1, 6)]
    assert expects_gain(after(found, [set()])) is True


def test_idle_rounds_do_not_end_it_before_all_gaps_were_listed() -> None:
    found = [{"a", "b"}, {"a", "b"}]
    assert expects_gain(after(found, [{"a", "b"}], left=MAX_LISTED + 1)) is True
    assert expects_gain(after(found, [{"a", "b"}], [{"a", "b"}], left=MAX_LISTED + 1)) is False


def test_idle_rounds_end_it_in_the_long_run() -> None:
    found = [{str(number), str(-number)} for number in range(1, 6)]
    idle: list[list[set[str]]] = [[set()]] * 40
    assert expects_gain(after(found, *idle)) is False


def test_the_estimate_grows_with_what_was_seen_once_and_shrinks_with_what_was_seen_twice() -> None:
    once = [{"a"}, {"b"}, {"c"}, {"d"}]
    twice = [{"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "a"}]
    assert expected_gain(once, (), 100) > expected_gain(twice, (), 100) == 0.0


def test_the_estimate_is_the_one_of_the_sources() -> None:
    # By hand: 3 samples, 3 seen once, 1 seen twice; unseen 2/3 * 3*2/(2*2) = 1; three more samples show
    # 1 - (1 - 3/(3*1+3))^3 = 0.875 of them.
    assert expected_gain([{"a", "d"}, {"b", "d"}, {"c"}], (), 100) == pytest.approx(0.875)


def test_no_more_can_be_gained_than_is_left() -> None:
    assert expected_gain([{str(number)} for number in range(50)], (), 3) <= 3


def test_the_end_of_a_run_tells_what_more_tokens_would_reach() -> None:
    # By hand: as above, a round reaches 0.875 more; 2,000 tokens were one round, so 10,000 are five.
    state = after([{"a", "d"}, {"b", "d"}, {"c"}], left=100)
    spent = UsageTotal(calls=1, usage=Usage(input_tokens=1_500, output_tokens=500))
    (doubt,) = make_stats(state, BudgetAccount(spent)).uncertainties
    told = "100 mutants and targets are not detected by any test"
    assert doubt == f"{told}; 10,000 more tokens would most likely reach 4 of them."
    assert make_stats(state, BudgetAccount()).uncertainties == (f"{told}.",)


def test_a_program_without_mutants_is_a_doubt_that_tells_the_reason() -> None:
    state = after([{"a"}])
    state.apply(QualityMeasured(replace(quality(0, 0), unmutated="nothing is mutated; install it")))
    assert "nothing is mutated; install it." in make_stats(state, BudgetAccount()).uncertainties


def test_before_any_test_holds_all_that_is_left_may_be_gained() -> None:
    assert expected_gain([], (), 7) == 7.0


def test_what_is_reached_without_a_model_says_nothing_of_one() -> None:
    vectors = [{"a", "x"}, {"b", "y"}, {"c", "z"}]
    assert expected_gain(vectors, {"a", "b", "c", "x", "y", "z"}, 10) == 0.0


PARTIAL = SuiteQuality((Coverage("line", 4, 4),), MutationScore(0, 0, 0), 1, {"library": 1_613})


def test_a_run_that_measures_a_small_part_of_a_program_is_never_satisfied() -> None:
    for quality_ in (PARTIAL, replace(PARTIAL, unmeasured_lines={})):
        state = after([{str(number) for number in range(20)}])
        config = replace(state.order.config, min_total_tests=1, combinatorial_floor=False)
        state.order = replace(state.order, config=config)
        state.apply(QualityMeasured(quality_))
        state.apply(ReflectionCompleted(Reflection(None, "", ReflectionAction.COMPLETE, ()), 10))
        state.exhausted_categories.add("alpha")
        step = next_step(state, has_subject=True)
        is_partial = quality_ is PARTIAL
        wanted = GenerationStop.ROUNDS_USED if is_partial else GenerationStop.SATISFIED
        assert step == FinishRun(wanted)
        doubts = make_stats(state, BudgetAccount()).uncertainties
        assert (
            "4 of 1,617 lines are measured; to measure library, name it in the task." in doubts
        ) is is_partial


@pytest.mark.parametrize(
    ("measured", "score"),
    [
        (SuiteQuality(), None),
        (SuiteQuality((Coverage("line", 4, 4),), MutationScore(0, 0, 0)), 10),
        (SuiteQuality((Coverage("line", 9, 10),), MutationScore(3, 7, 0)), 3),
        (SuiteQuality((Coverage("line", 1, 10),), MutationScore(3, 7, 0)), 1),
        (PARTIAL, 1),
    ],
)
def test_an_assessment_is_at_most_the_smaller_measurement(measured: SuiteQuality, score: int | None) -> None:
    assert measured.max_score == score
    state = after([{"a"}])
    state.score = 9
    state.apply(QualityMeasured(measured))
    assert make_stats(state, BudgetAccount()).comprehensiveness_score == min(9, score or 9)


def test_where_few_calls_are_left_no_round_is_reflected_on() -> None:
    state, few = after([{"a"}]), after([{"a"}])
    state.has_baseline = few.has_baseline = True
    assert isinstance(next_step(state, has_subject=True), ReflectOnCategories)
    assert requested_counts(state, GenerationRound("alpha", 2)) == (1, 3)
    few.call_tokens = few.order.config.max_total_tokens // 7
    assert next_step(few, has_subject=True) == RunRounds((GenerationRound("alpha", 2),))
    assert requested_counts(few, GenerationRound("alpha", 2)) == (3, 4)
    assert requested_counts(few, GenerationRound(None, 1)) == (5, 10)
    unmeasured = GenerationState(few.order, few.call_tokens)
    unmeasured.apply(GenerationProgressed(unmeasured.phase, "alpha", 1, "begins"))
    unmeasured.apply(TestAdded(TestCase("alpha_1_1", "alpha", "given", round=1)))
    unmeasured.apply(GenerationProgressed(unmeasured.phase, "alpha", 1, "is over", StepOutcome.DONE))
    assert isinstance(next_step(unmeasured, has_subject=False), ReflectOnCategories)


def test_tests_that_fail_do_not_count_for_the_number_that_is_enough() -> None:
    state = after([{"a"}, {"b"}])
    state.has_baseline = True
    state.order = replace(state.order, config=replace(state.order.config, target_total_tests=3))
    wrong = TestCase("alpha_2_9", "alpha", "given", round=2)
    state.apply(TestAdded(wrong))
    state.apply(TestRan(wrong.test_id, CaseVerdict(EvaluatedTest(TestStatus.FAILED, 5), counts=False)))
    state.apply(QualityMeasured(quality(2, 10)))
    assert len(state.model_tests) == 3
    assert not isinstance(next_step(state, has_subject=True), FinishRun)
    right = TestCase("alpha_2_10", "alpha", "given", round=2)
    state.apply(TestAdded(right))
    state.apply(TestRan(right.test_id, CaseVerdict(EvaluatedTest(TestStatus.PASSED, 5), counts=False)))
    state.apply(QualityMeasured(quality(2, 10)))
    assert next_step(state, has_subject=True) == FinishRun(GenerationStop.TARGET_TOTAL_TESTS)
