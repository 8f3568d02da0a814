"""Decision about the next step of a test generation run, as a pure function of its state.

Why a pure function. A run takes minutes, costs money, and must survive a restart of the process. Its only
state is the event log: `RunState` is the fold of the events, and `next_step` maps this state to the next
step. No variable of the runner records a plan. A process that resumes a run folds the same events, so it
takes the same step. The decision can be tested with hand-written states, without a model, a clock or a
database.

Order of decisions. The first one that applies is the next step:

1. Baseline tests, which need no model, if there is a subject and they are enabled. 2. Rounds in progress.
They were interrupted, so they run again before anything else. The prompt of a round
   depends only on the events before it, and tests that were already recorded are recognized.
3. Run and measure tests without results, because later decisions depend on the results. 4. The end, if the
total target is met. 5. Categories: a reflection on each new round, then the next round. 6. The refinement
over all categories: an assessment, then a round. 7. A round of the category with the fewest tests, up to the
minimum in total. 8. The end, with its reason.

Invariants.

- A category without rounds left, with a failed call, or whose last round added nothing is never continued.
- While categories are worked on one after the other, an earlier one is never revisited. Only the filling up
  to the minimum (7) may choose it again. With parallel categories, all open ones continue in one step.
- Each round is reflected on at most once; a failed reflection is not repeated.
- If quality is measured, the expected gain decides about the refinement, and it can end a category. A model's
  assessment decides about the refinement only without measurements. A reflection without gaps ends a category
  in both cases, but never below its minimum of tests.
- The total number of rounds never exceeds its limit. Limits of tokens, cost and time are not decided in this
  module; the runner ends the run if a reservation fails.

Alternatives. A plan that is computed at the start would not react to measurements. A state machine with
explicit stored states would duplicate the event log, and both could disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety.testgen.events import StoppedBy
from peripety.testgen.loop.gain import is_gain_expected, missing
from peripety.testgen.loop.state import Round

if TYPE_CHECKING:
    from peripety.testgen.loop.state import RunState

__all__ = ["Ask", "Assess", "Examine", "Finish", "MakeFloor", "Reflect", "Step", "is_refined", "next_step"]


@dataclass(frozen=True, slots=True)
class MakeFloor:
    """Add the baseline tests, which need no model."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Run generation rounds.

    Attributes:
        rounds: the rounds to run concurrently; interrupted ones are repeated.
    """

    rounds: tuple[Round, ...]


@dataclass(frozen=True, slots=True)
class Examine:
    """Run the tests without results, and measure all of them."""


@dataclass(frozen=True, slots=True)
class Reflect:
    """Reflect on the gaps of some categories."""

    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assess:
    """Assess the whole run."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""

    stopped_by: StoppedBy


Step: TypeAlias = MakeFloor | Ask | Examine | Reflect | Assess | Finish


def next_step(state: RunState, *, has_subject: bool) -> Step:
    """Return the next step.

    Args:
        state: the state of a run that has not ended.
        has_subject: True if tests can be run.
    """
    config = state.order.config
    if has_subject and config.combinatorial_floor and not state.has_floor:
        return MakeFloor()
    if state.under_way:
        return Ask(tuple(state.under_way))
    if has_subject and (state.not_run or not state.is_measured):
        return Examine()
    if len(state.written) >= config.target_total_tests:
        return Finish(StoppedBy.TARGET_TOTAL_TESTS)
    return _in_categories(state) or _over_all(state)


def _in_categories(state: RunState) -> Step | None:
    """Return the next step for the categories; None if they are complete."""
    names = [category.name for category in state.order.categories]
    if not state.order.config.parallel_categories:
        # A category that was left is not revisited, even if later events would justify it.
        begun = [name for name in names if state.rounds[name]]
        names = [*begun[-1:], *names[len(begun) : len(begun) + 1]]
        names = [name for name in names if _goes_on(state, name)][:1]
    names = [name for name in names if _goes_on(state, name)]
    if names and state.total_rounds >= state.order.config.max_total_rounds:
        return Finish(StoppedBy.MAX_TOTAL_ROUNDS)
    unseen = tuple(name for name in names if _is_to_be_looked_at(state, name))
    if unseen:
        return Reflect(unseen)
    return _rounds_of(state, names) if names else None


def _goes_on(state: RunState, name: str) -> bool:
    """Return True if a category should have another round, subject to a reflection on its last one."""
    config, rounds = state.order.config, state.rounds[name]
    if not _is_answered(state, name) or rounds >= config.max_rounds_per_category:
        return False
    if not rounds:
        return True
    tests = len(state.of_category(name))
    if tests >= config.target_tests_per_category:
        return False
    if _may_end(state) and is_gain_expected(state) is False:
        return tests < config.min_tests_per_category
    seen = state.looked_back.get(name)
    is_content = seen is not None and seen.rounds == rounds and seen.is_content
    return not is_content or tests < config.min_tests_per_category


def _is_to_be_looked_at(state: RunState, name: str) -> bool:
    seen = state.looked_back.get(name)
    return state.rounds[name] > 0 and (seen is None or seen.rounds < state.rounds[name])


def _rounds_of(state: RunState, names: list[str]) -> Ask:
    left = state.order.config.max_total_rounds - state.total_rounds
    return Ask(tuple(Round(name, state.rounds[name] + 1) for name in names[:left]))


def _over_all(state: RunState) -> Step:
    """Return the next step after the categories."""
    config = state.order.config
    refinements = state.rounds[None]
    wanted: Step | None = None
    if config.enable_global_refinement and _is_answered(state, None):
        seen = state.looked_back.get(None)
        if seen is None or seen.rounds < refinements:
            return Assess()
        if is_refined(state, state.score):
            wanted = Ask((Round(None, refinements + 1),))
    if wanted is None and not _may_end(state):
        wanted = _to_fill_up(state)
    if wanted is not None and state.total_rounds >= config.max_total_rounds:
        return Finish(StoppedBy.MAX_TOTAL_ROUNDS)
    return wanted or Finish(_why_it_ends(state))


def _is_answered(state: RunState, name: str | None) -> bool:
    """Return False if the last call failed or added nothing."""
    return name not in state.given_up and name not in state.exhausted


def _may_end(state: RunState) -> bool:
    return len(state.written) >= state.order.config.min_total_tests


def is_refined(state: RunState, score: int | None) -> bool:
    """Return True if the refinement should have another round; measurements override the assessment.

    Args:
        state: the state of the run.
        score: its assessment; None without one.
    """
    config = state.order.config
    if state.rounds[None] >= config.max_global_refinement_rounds:
        return False
    if not _may_end(state):
        return True
    is_expected = is_gain_expected(state)
    if is_expected is None:
        return score is not None and score < config.min_comprehensiveness_score
    return is_expected


def _to_fill_up(state: RunState) -> Step | None:
    """Return another round of the category with the fewest tests that has rounds left."""
    most = state.order.config.max_rounds_per_category
    names = [category.name for category in state.order.categories]
    left = [name for name in names if state.rounds[name] < most and _is_answered(state, name)]
    if not left:
        return None
    return _rounds_of(state, [min(left, key=lambda name: len(state.of_category(name)))])


def _why_it_ends(state: RunState) -> StoppedBy:
    if not state.was_answered:
        return StoppedBy.ERROR
    if state.given_up or not _may_end(state):
        return StoppedBy.ROUNDS_USED
    left = missing(state.quality)
    if left is not None:
        is_expected = is_gain_expected(state)
        return (
            StoppedBy.SATISFIED
            if not left
            else (StoppedBy.ROUNDS_USED if is_expected else StoppedBy.EXPECTED_GAIN)
        )
    if state.order.config.enable_global_refinement:
        least = state.order.config.min_comprehensiveness_score
        is_satisfied = state.score is not None and state.score >= least
    else:
        is_satisfied = all(_is_satisfied(state, category.name) for category in state.order.categories)
    return StoppedBy.SATISFIED if is_satisfied else StoppedBy.ROUNDS_USED


def _is_satisfied(state: RunState, name: str) -> bool:
    seen = state.looked_back.get(name)
    enough = state.order.config.target_tests_per_category
    return len(state.of_category(name)) >= enough or (seen is not None and seen.is_content)
