"""State of a run as the fold of its events, which are the only source of its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from peripety.testgen.events import (
    DuplicateDropped,
    GenerationCompleted,
    GenerationFailed,
    GenerationPhase,
    GenerationProgressed,
    GenerationStarted,
    QualityMeasured,
    ReflectionAction,
    ReflectionCompleted,
    StepOutcome,
    TestAdded,
    TestRan,
)
from peripety.testgen.types import TestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.testgen.events import GenerationEvent, GenerationStats, Reflection
    from peripety.testgen.types import CaseVerdict, SuiteQuality, TestCase, TestGenConfig, TestGenOrder


_MET = {None, TestStatus.PASSED}
_FEW_CALLS = 8
"""Number of calls that are too few for a reflection on each round."""


class GenerationRound(NamedTuple):
    """A generation round.

    Attributes:
        category: the category of its tests; None for the refinement over all categories.
        number: from 1.
    """

    category: str | None
    number: int


@dataclass(frozen=True, slots=True)
class ReflectionRecord:
    """The latest reflection on a category, or the assessment of the whole run.

    Attributes:
        rounds: the number of rounds before it.
        reflection: the result; None if the call failed.
    """

    rounds: int
    reflection: Reflection | None

    @property
    def found_no_gap(self) -> bool:
        """True if nothing was missing."""
        return self.reflection is not None and self.reflection.action is ReflectionAction.COMPLETE


def allows_few_calls(call_tokens: int, config: TestGenConfig) -> bool:
    """Return True if the token limit allows few model calls.

    Args:
        call_tokens: the tokens that each call needs before its question.
        config: the limits of the run.
    """
    return call_tokens * _FEW_CALLS > config.max_total_tokens


class GenerationState:
    """The state of a run after its events so far.

    Args:
        order: the input of the run.
        call_tokens: the tokens that each model call needs before its question; 0 if unknown.

    Attributes:
        order: the input of the run.
        phase: the current phase.
        category: the current category; None without one.
        tests: the tests by id, in the order of their events, without dropped ones.
        tests_by_round: all tests of each round in order, including dropped ones.
        verdicts: the latest verdicts by test id.
        superseded: ids of tests that were not met and that a later test, which passes, replaces.
        dropped: the duplicates, in order.
        reflections: all reflections, in order.
        last_reflections: the latest reflection on each category, and the latest assessment (None).
        score: the latest assessment; None without one.
        rounds: the number of rounds begun, by category; None for the refinement.
        active_rounds: rounds in progress, with the number of events before each.
        failed_categories: categories, or the refinement (None), with a failed call.
        exhausted_categories: categories, or the refinement (None), whose last round added nothing.
        has_baseline: True if all baseline tests are recorded.
        quality: the latest measurement.
        is_measured: True if the measurement includes every test that was run.
        uncertainties: doubts about the run, in order.
        had_response: True if a model call has succeeded.
        ended: the final statistics; None before the end.
        call_tokens: the tokens that each model call needs before its question; 0 if unknown.
    """

    def __init__(self, order: TestGenOrder, call_tokens: int = 0) -> None:
        self.order = order
        self.call_tokens = call_tokens
        self.phase = GenerationPhase.CATEGORY_GENERATION
        self.category: str | None = None
        self.tests: dict[str, TestCase] = {}
        self.tests_by_round: dict[GenerationRound, list[TestCase]] = {}
        self.verdicts: dict[str, CaseVerdict] = {}
        self.superseded: set[str] = set()
        self.dropped: list[DuplicateDropped] = []
        self.reflections: list[Reflection] = []
        self.last_reflections: dict[str | None, ReflectionRecord] = {}
        self.score: int | None = None
        self.rounds: dict[str | None, int] = {
            None: 0,
            **{category.name: 0 for category in order.categories},
        }
        self.active_rounds: dict[GenerationRound, int] = {}
        self.failed_categories: set[str | None] = set()
        self.exhausted_categories: set[str | None] = set()
        self.has_baseline = False
        self.quality: SuiteQuality | None = None
        self.is_measured = True
        self.uncertainties: list[str] = []
        self.had_response = False
        self.ended: GenerationStats | None = None
        self._events = 0

    @classmethod
    def fold(
        cls,
        events: Iterable[GenerationEvent],
        order: TestGenOrder | None = None,
        call_tokens: int = 0,
    ) -> GenerationState:
        """Return the state after some events of a run.

        Args:
            events: the events from the first one on.
            order: the input of the run; None to read it from the first event.
            call_tokens: the tokens that each model call needs before its question; 0 if unknown.
        """
        state = None if order is None else cls(order, call_tokens)
        for event in events:
            if state is None:
                if not isinstance(event, GenerationStarted):
                    raise ValueError("first event of a run is not Started")
                state = cls(event.order)
            state.apply(event)
        if state is None:
            raise ValueError("event log of a run is empty")
        return state

    @property
    def has_few_calls(self) -> bool:
        """True if the token limit allows few model calls, because each needs many tokens for the material."""
        return allows_few_calls(self.call_tokens, self.order.config)

    @property
    def total_rounds(self) -> int:
        """The number of generation rounds so far."""
        return sum(self.rounds.values())

    @property
    def current_tests(self) -> list[TestCase]:
        """The tests without superseded ones."""
        return [test for test in self.tests.values() if test.test_id not in self.superseded]

    @property
    def model_tests(self) -> list[TestCase]:
        """The tests that models wrote, without dropped ones."""
        return [test for test in self.tests.values() if not test.is_combinatorial]

    @property
    def lasting_tests(self) -> list[TestCase]:
        """The tests that models wrote, without those that are known to fail."""
        return [test for test in self.model_tests if self._may_hold(test)]

    @property
    def not_run(self) -> list[TestCase]:
        """The tests without a verdict, by round and position, regardless of the order of events."""
        waiting = [test for test in self.tests.values() if test.test_id not in self.verdicts]
        floor = [test for test in waiting if test.is_combinatorial]
        places = {test.test_id: test for test in waiting}
        rounds = [test for made in self.tests_by_round.values() for test in made if test.test_id in places]
        return [*floor, *rounds]

    def tests_of_category(self, category: str) -> list[TestCase]:
        """Return the tests of a category that models wrote, without those that are known to fail."""
        return [test for test in self.lasting_tests if test.category == category]

    def apply(self, event: GenerationEvent) -> None:
        """Apply the next event."""
        match event:
            case GenerationProgressed():
                self._apply_progress(event)
            case TestAdded():
                self._add_test(event.test)
                self.tests[event.test.test_id] = event.test
            case DuplicateDropped():
                self._add_test(event.test)
                self.tests.pop(event.test.test_id, None)
                self.dropped.append(event)
            case TestRan():
                self.verdicts[event.test_id] = event.verdict
                self.is_measured = False
                self._supersede(event)
            case ReflectionCompleted():
                self._apply_reflection(event)
            case QualityMeasured():
                self.quality = event.quality
                self.is_measured = True
            case GenerationCompleted() | GenerationFailed():
                self.ended = event.stats
                self.phase, self.category = GenerationPhase.COMPLETE, None
            case GenerationStarted():
                pass
        self._events += 1

    def _apply_progress(self, event: GenerationProgressed) -> None:
        self.phase, self.category = event.phase, event.category
        if event.uncertainty:
            self.uncertainties.append(event.uncertainty)
        if event.round:
            self._apply_round(event)
        elif event.end is StepOutcome.FAILED:
            self.last_reflections[event.category] = ReflectionRecord(self.rounds[event.category], None)
        elif event.end is StepOutcome.DONE:
            self.has_baseline = True

    def _apply_round(self, event: GenerationProgressed) -> None:
        this, end = GenerationRound(event.category, event.round), event.end
        if end is None:
            self.rounds[this.category] = this.number
            self.tests_by_round.setdefault(this, [])
            self.active_rounds[this] = self._events
            return
        self.active_rounds.pop(this, None)
        if end is StepOutcome.FAILED:
            self.failed_categories.add(this.category)
        else:
            self.had_response = True
            if not self.tests_by_round[this] and not event.uncertainty:
                self.exhausted_categories.add(this.category)

    def _add_test(self, test: TestCase) -> None:
        if test.is_combinatorial:
            return
        self.had_response = True
        made = self.tests_by_round.setdefault(
            GenerationRound(None if test.is_global else test.category, test.round),
            [],
        )
        # A test that is dropped after it was run is already listed.
        if all(other.test_id != test.test_id for other in made):
            made.append(test)

    def _supersede(self, event: TestRan) -> None:
        test = self.tests.get(event.test_id)
        replaced = self.verdicts.get(test.replaces) if test is not None else None
        statuses = (event.verdict.examined.status, replaced and replaced.examined.status)
        if test is not None and statuses[0] is TestStatus.PASSED and statuses[1] not in _MET:
            self.superseded.add(test.replaces)

    def _apply_reflection(self, event: ReflectionCompleted) -> None:
        reflection = event.reflection
        self.had_response = True
        self.reflections.append(reflection)
        self.last_reflections[reflection.category] = ReflectionRecord(
            self.rounds[reflection.category],
            reflection,
        )
        if event.score is not None:
            self.score = event.score

    def _may_hold(self, test: TestCase) -> bool:
        verdict = self.verdicts.get(test.test_id)
        return verdict is None or verdict.examined.status is TestStatus.PASSED
