"""Next step of a test generation run, as a pure function of its state; expected gain and statistics.

Why a pure function. A run takes minutes, costs money, and must survive a restart of the process. Its only
state is the event log: `RunState` is the fold of the events, and `next_step` maps this state to the next
step. No variable of the runner records a plan. A process that resumes a run folds the same events, so it
takes the same step. The decision can be tested with hand-written states, without a model, a clock or a
database.

Order of decisions. The first one that applies is the next step:

1. Baseline tests, which need no model, if there is a subject and they are enabled.
2. Rounds in progress. They were interrupted, so they run again before anything else. The prompt of a round
   depends only on the events before it, and tests that were already recorded are recognized.
3. Run and measure tests without results, because later decisions depend on the results.
4. The end, if the total target is met. With the direct profile, rounds over all categories follow: a large
   first one, then a few on what is not detected, without reflections.
5. Categories: a reflection on each new round, then the next round.
6. The refinement over all categories: an assessment, then a round.
7. A round of the category with the fewest tests, up to the minimum in total.
8. The end, with its reason.

Invariants.

- A category without rounds left, with a failed call, or whose last round added nothing is never continued.
- While categories are worked on one after the other, an earlier one is never revisited. Only the filling up
  to the minimum (7) may choose it again. With parallel categories, all open ones continue in one step.
- Each round is reflected on at most once; a failed reflection is not repeated. If quality is measured, and
  the token limit allows few calls, no round is reflected on: the measured gaps lead the rounds.
- If quality is measured, the expected gain decides about the refinement, and it can end a category. A
  model's assessment decides about the refinement only without measurements. A reflection without gaps ends
  a category in both cases, but never below its minimum of tests.
- The total number of rounds never exceeds its limit. Limits of tokens, cost and time are not decided in
  this module; the runner ends the run if a reservation fails.

Expected gain. The estimators are those for unseen species: killed mutants and covered targets are species,
tests are samples. The number of species that a few more samples would show for the first time follows from
the number of species that were seen once and twice:

- I. J. Good, "The population frequencies of species and the estimation of population parameters",
  Biometrika 40 (1953);
- A. Chao, "Estimating the population size for capture-recapture data with unequal catchability", Biometrics
  43 (1987); `_estimate_unseen` is its bias-corrected form;
- R. K. Colwell et al., "Models and estimators linking individual-based and sample-based rarefaction,
  extrapolation and comparison of assemblages", Journal of Plant Ecology 5 (2012), equation 18:
  `_estimate_new`;
- M. Böhme, "STADS: Software Testing as Species Discovery", ACM TOSEM 27 (2018), where tests are the
  samples.

Rounds are not random samples, because their prompts list the gaps. So the estimate never ends a run by
itself: that takes a round without any gain, and each further one makes the estimate smaller. A prompt lists
only some of many gaps, and a round without gain shows nothing about the others. So the estimate is used only
after all gaps were listed.

Alternatives. A plan that is computed at the start would not react to measurements. A state machine with
explicit stored states would duplicate the event log, and both could disagree.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.budgets.types import BudgetAmount
from peripety.testgen.events import GenerationStats, GenerationStop
from peripety.testgen.prompts.user_messages import MAX_LISTED
from peripety.testgen.run.state import GenerationRound
from peripety.testgen.types import RunProfile, TestStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from peripety.testgen.run.budget import BudgetAccount
    from peripety.testgen.run.state import GenerationState
    from peripety.testgen.types import SuiteQuality, TestCase


_TESTS_PER_ROUND = 3
_MIN_EXPECTED_GAIN = 1.0
_MAX_SURVIVOR_ROUNDS = 3
"""Rounds of the direct profile after the first one."""


def count_missing(quality: SuiteQuality | None) -> int | None:
    """Return the number of surviving mutants and uncovered targets.

    Returns:
        None if nothing can be measured, or if nothing is left of the smaller part that is measured.
    """
    if quality is None:
        return None
    score = quality.mutation
    survived, killed = (score.survived, score.killed) if score is not None else (0, 0)
    reachable = sum(coverage.reachable for coverage in quality.coverage)
    if not survived + killed + reachable:
        return None
    left = survived + reachable - sum(coverage.covered for coverage in quality.coverage)
    return left if left or not quality.is_partial else None


def expects_gain(state: GenerationState) -> bool | None:
    """Return True if another round is expected to add something; None if nothing can be measured."""
    left = count_missing(state.quality)
    if left is None:
        return None
    yields = [_count_new(state, [test.test_id for test in tests]) for tests in state.tests_by_round.values()]
    idle = next((number for number, amount in enumerate(reversed(yields)) if amount), len(yields))
    if not left or not idle or _has_unlisted_gaps(state, idle):
        return bool(left)
    return _gain_of_round(state, left) / (1 + idle) >= _MIN_EXPECTED_GAIN


def _has_unlisted_gaps(state: GenerationState, idle: int) -> bool:
    """Return True if the prompts of the last rounds, which added nothing, cannot have listed all gaps."""
    quality = state.quality
    if quality is None:
        return False
    survivors = quality.mutation.survived if quality.mutation is not None else 0
    uncovered = sum(coverage.reachable - coverage.covered for coverage in quality.coverage)
    return max(survivors, uncovered) > idle * MAX_LISTED


def is_idle(state: GenerationState) -> bool:
    """Return True if the tests of the last round have reached no mutant and no target first."""
    rounds = [*state.tests_by_round.values()]
    return bool(rounds) and not _count_new(state, [test.test_id for test in rounds[-1]])


def _gain_of_round(state: GenerationState, left: int) -> float:
    """Return the number of mutants and targets that another round is expected to reach first."""
    vectors = [_reached_ids(state, test.test_id) for test in state.model_tests]
    floor = [_reached_ids(state, test.test_id) for test in state.tests.values() if test.is_combinatorial]
    known = frozenset[str]().union(*floor)
    return expected_gain([vector for vector in vectors if vector], known, left)


def expected_gain(vectors: Sequence[Collection[str]], known: Collection[str], left: int) -> float:
    """Return the number of mutants and targets that another round is expected to reach first.

    Args:
        vectors: the set that each test reaches.
        known: the set that is reached without them; it is excluded from the estimate.
        left: the number of mutants and targets that no test reaches.
    """
    samples = len(vectors)
    if not samples:
        return float(left)
    seen = Counter(element for vector in vectors for element in vector if element not in known)
    times = Counter(seen.values())
    return _estimate_new(min(_estimate_unseen(samples, times[1], times[2]), left), samples, times[1])


def _estimate_unseen(samples: int, once: int, twice: int) -> float:
    """Return the estimated number of unseen species, from those seen once and twice."""
    return (samples - 1) / samples * once * (once - 1) / (2 * (twice + 1))


def _estimate_new(unseen: float, samples: int, once: int) -> float:
    """Return the expected number of unseen species that a round would show."""
    if not unseen:
        return 0.0
    return float(unseen * (1 - (1 - once / (samples * unseen + once)) ** _TESTS_PER_ROUND))


def _count_new(state: GenerationState, test_ids: Sequence[str]) -> int:
    verdicts = [state.verdicts[test_id] for test_id in test_ids if test_id in state.verdicts]
    return sum(len(verdict.new_kills) + len(verdict.new_coverage) for verdict in verdicts)


def _reached_ids(state: GenerationState, test_id: str) -> frozenset[str]:
    verdict = state.verdicts.get(test_id)
    return frozenset() if verdict is None else verdict.examined.kills | verdict.examined.covered


_LOW_CONFIDENCE = 0.5
_MAX_CITED_TESTS = 10
_MORE_TOKENS = 10_000


def make_stats(
    state: GenerationState,
    account: BudgetAccount,
    stopped_by: GenerationStop | None = None,
) -> GenerationStats:
    """Return the statistics of a run.

    Args:
        state: the state of the run.
        account: its budget account.
        stopped_by: the reason for its end; None while it is running.
    """
    rounds = {name: count for name, count in state.rounds.items() if name is not None}
    return GenerationStats(
        total_tests=len(state.tests),
        total_rounds=state.total_rounds,
        category_rounds=rounds,
        global_rounds=state.rounds[None],
        comprehensiveness_score=_supported_score(state),
        spent=account.spent,
        seconds=account.worked_seconds,
        uncertainties=(
            *dict.fromkeys(state.uncertainties),
            *_iter_doubts(state, BudgetAmount.from_usage(account.spent).tokens),
        ),
        stopped_by=stopped_by,
        quality=state.quality,
        duplicates=len(state.dropped),
    )


def _supported_score(state: GenerationState) -> int | None:
    """Return the assessment, at most what the measurements allow."""
    most = None if state.quality is None else state.quality.max_score
    return state.score if state.score is None or most is None else min(state.score, most)


def _iter_doubts(state: GenerationState, tokens: int) -> Iterator[str]:
    """Yield doubts about the existing tests, and what further tokens would reach, from the used ones."""
    if state.verdicts and state.not_run:
        yield f"{_count_phrase(len(state.not_run))} not run, because the time limit was reached."
    failed = [
        test for test in state.current_tests if _status_of(state, test) is TestStatus.FAILED and test.source
    ]
    for test in failed[:_MAX_CITED_TESTS]:
        yield f"the subject contradicts its source ({test.test_id}): {test.source}"
    if len(failed) > _MAX_CITED_TESTS:
        yield f"{_count_phrase(len(failed) - _MAX_CITED_TESTS)} contradicted by the subject likewise."
    statuses = [_status_of(state, test) for test in state.current_tests if test not in failed]
    for status, what in (
        (TestStatus.FAILED, "not met by the subject; either the tests or the subject are wrong"),
        (TestStatus.UNSTABLE, "unstable"),
        (TestStatus.NOT_EXECUTABLE, "not executable"),
    ):
        if count := statuses.count(status):
            yield f"{_count_phrase(count)} {what}."
    unsure = sum(test.confidence < _LOW_CONFIDENCE for test in state.model_tests)
    if unsure:
        yield f"{_count_phrase(unsure)} of low confidence; their expectations may be guesses."
    if state.quality is not None:
        yield from _describe_scope(state.quality)
    left = count_missing(state.quality)
    if left:
        told = f"{left} mutants and targets are not detected by any test"
        if tokens and state.total_rounds:
            rounds = _MORE_TOKENS * state.total_rounds / tokens
            gain = min(left, round(_gain_of_round(state, left) * rounds))
            told += f"; {_MORE_TOKENS:,} more tokens would most likely reach {gain} of them"
        yield f"{told}."


def _status_of(state: GenerationState, test: TestCase) -> TestStatus | None:
    verdict = state.verdicts.get(test.test_id)
    return None if verdict is None else verdict.examined.status


def _describe_scope(quality: SuiteQuality) -> Iterator[str]:
    """Yield what is not measured, with a remedy."""
    if quality.unmeasured_lines:
        measured = sum(coverage.reachable for coverage in quality.coverage)
        total = measured + sum(quality.unmeasured_lines.values())
        names = ", ".join(sorted(quality.unmeasured_lines))
        yield f"{measured:,} of {total:,} lines are measured; to measure {names}, name it in the task."
    if quality.unmutated:
        yield f"{quality.unmutated}."


def _count_phrase(count: int) -> str:
    return "1 test is" if count == 1 else f"{count} tests are"


@dataclass(frozen=True, slots=True)
class AddBaseline:
    """Add the baseline tests, which need no model."""


@dataclass(frozen=True, slots=True)
class RunRounds:
    """Run generation rounds.

    Attributes:
        rounds: the rounds to run concurrently; interrupted ones are repeated.
    """

    rounds: tuple[GenerationRound, ...]


@dataclass(frozen=True, slots=True)
class EvaluateTests:
    """Run the tests without results, and measure all of them."""


@dataclass(frozen=True, slots=True)
class ReflectOnCategories:
    """Reflect on the gaps of some categories."""

    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssessRun:
    """Assess the whole run."""


@dataclass(frozen=True, slots=True)
class FinishRun:
    """End the run."""

    stopped_by: GenerationStop


NextStep: TypeAlias = AddBaseline | RunRounds | EvaluateTests | ReflectOnCategories | AssessRun | FinishRun


def next_step(state: GenerationState, *, has_subject: bool) -> NextStep:
    """Return the next step.

    Args:
        state: the state of a run that has not ended.
        has_subject: True if tests can be run.
    """
    config = state.order.config
    if has_subject and config.combinatorial_floor and not state.has_baseline:
        return AddBaseline()
    if state.active_rounds:
        return RunRounds(tuple(state.active_rounds))
    if has_subject and (state.not_run or not state.is_measured):
        return EvaluateTests()
    if len(state.lasting_tests) >= config.target_total_tests:
        return FinishRun(GenerationStop.TARGET_TOTAL_TESTS)
    if config.profile is RunProfile.DIRECT:
        return _next_direct_step(state)
    return _next_category_step(state) or _next_global_step(state)


def _next_direct_step(state: GenerationState) -> NextStep:
    """Return the next round over all categories, after the first one only on what is not detected."""
    rounds = state.rounds[None]
    is_expected = expects_gain(state)
    if rounds:
        wanted = not _has_enough_tests(state) if is_expected is None else is_expected
        if not wanted or rounds > _MAX_SURVIVOR_ROUNDS or not _is_responsive(state, None):
            return FinishRun(_stop_reason(state))
    if state.total_rounds >= state.order.config.max_total_rounds:
        return FinishRun(GenerationStop.MAX_TOTAL_ROUNDS)
    return RunRounds((GenerationRound(None, rounds + 1),))


def _next_category_step(state: GenerationState) -> NextStep | None:
    """Return the next step for the categories; None if they are complete."""
    names = [category.name for category in state.order.categories]
    if not state.order.config.parallel_categories:
        # A category that was left is not revisited, even if later events would justify it.
        begun = [name for name in names if state.rounds[name]]
        names = [*begun[-1:], *names[len(begun) : len(begun) + 1]]
        names = [name for name in names if _may_continue(state, name)][:1]
    names = [name for name in names if _may_continue(state, name)]
    if names and state.total_rounds >= state.order.config.max_total_rounds:
        return FinishRun(GenerationStop.MAX_TOTAL_ROUNDS)
    unseen = tuple(name for name in names if _needs_reflection(state, name))
    if unseen:
        return ReflectOnCategories(unseen)
    return _next_rounds(state, names) if names else None


def _may_continue(state: GenerationState, name: str) -> bool:
    """Return True if a category should have another round, subject to a reflection on its last one."""
    config, rounds = state.order.config, state.rounds[name]
    if not _is_responsive(state, name) or rounds >= config.max_rounds_per_category:
        return False
    if not rounds:
        return True
    tests = len(state.tests_of_category(name))
    if tests >= config.target_tests_per_category:
        return False
    if _has_enough_tests(state) and expects_gain(state) is False:
        return tests < config.min_tests_per_category
    seen = state.last_reflections.get(name)
    is_content = seen is not None and seen.rounds == rounds and seen.found_no_gap
    return not is_content or tests < config.min_tests_per_category


def _needs_reflection(state: GenerationState, name: str) -> bool:
    if state.has_few_calls and expects_gain(state) is not None:
        return False
    seen = state.last_reflections.get(name)
    return state.rounds[name] > 0 and (seen is None or seen.rounds < state.rounds[name])


def _next_rounds(state: GenerationState, names: list[str]) -> RunRounds:
    left = state.order.config.max_total_rounds - state.total_rounds
    return RunRounds(tuple(GenerationRound(name, state.rounds[name] + 1) for name in names[:left]))


def _next_global_step(state: GenerationState) -> NextStep:
    """Return the next step after the categories."""
    config = state.order.config
    refinements = state.rounds[None]
    wanted: NextStep | None = None
    if config.enable_global_refinement and _is_responsive(state, None):
        seen = state.last_reflections.get(None)
        if seen is None or seen.rounds < refinements:
            return AssessRun()
        if needs_refinement(state, state.score):
            wanted = RunRounds((GenerationRound(None, refinements + 1),))
    if wanted is None and not _has_enough_tests(state):
        wanted = _fill_up_step(state)
    if wanted is not None and state.total_rounds >= config.max_total_rounds:
        return FinishRun(GenerationStop.MAX_TOTAL_ROUNDS)
    return wanted or FinishRun(_stop_reason(state))


def _is_responsive(state: GenerationState, name: str | None) -> bool:
    """Return False if the last call failed or added nothing."""
    return name not in state.failed_categories and name not in state.exhausted_categories


def _has_enough_tests(state: GenerationState) -> bool:
    return len(state.model_tests) >= state.order.config.min_total_tests


def needs_refinement(state: GenerationState, score: int | None) -> bool:
    """Return True if the refinement should have another round; measurements override the assessment.

    Args:
        state: the state of the run.
        score: its assessment; None without one.
    """
    config = state.order.config
    if state.rounds[None] >= config.max_global_refinement_rounds:
        return False
    if not _has_enough_tests(state):
        return True
    is_expected = expects_gain(state)
    if is_expected is None:
        return score is not None and score < config.min_comprehensiveness_score
    return is_expected


def _fill_up_step(state: GenerationState) -> NextStep | None:
    """Return another round of the category with the fewest tests that has rounds left."""
    most = state.order.config.max_rounds_per_category
    names = [category.name for category in state.order.categories]
    left = [name for name in names if state.rounds[name] < most and _is_responsive(state, name)]
    if not left:
        return None
    return _next_rounds(state, [min(left, key=lambda name: len(state.tests_of_category(name)))])


def _stop_reason(state: GenerationState) -> GenerationStop:
    if not state.had_response:
        return GenerationStop.ERROR
    is_partial = state.quality is not None and state.quality.is_partial
    if state.failed_categories or not _has_enough_tests(state) or is_partial:
        return GenerationStop.ROUNDS_USED
    left = count_missing(state.quality)
    if left is not None:
        is_expected = expects_gain(state)
        return (
            GenerationStop.SATISFIED
            if not left
            else (GenerationStop.ROUNDS_USED if is_expected else GenerationStop.EXPECTED_GAIN)
        )
    if state.order.config.enable_global_refinement:
        least = state.order.config.min_comprehensiveness_score
        is_satisfied = state.score is not None and state.score >= least
    else:
        is_satisfied = all(
            _is_category_satisfied(state, category.name) for category in state.order.categories
        )
    return GenerationStop.SATISFIED if is_satisfied else GenerationStop.ROUNDS_USED


def _is_category_satisfied(state: GenerationState, name: str) -> bool:
    seen = state.last_reflections.get(name)
    enough = state.order.config.target_tests_per_category
    return len(state.tests_of_category(name)) >= enough or (seen is not None and seen.found_no_gap)
