"""A run is the fold of its events: nothing else says how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from peripety.testgen.events import (
    Completed,
    DuplicateDropped,
    Failed,
    Measured,
    Phase,
    Progressed,
    Reflected,
    ReflectionAction,
    Started,
    StepEnd,
    TestMade,
    TestRan,
)
from peripety.testgen.model import TestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.testgen.events import Reflection, RunEvent, Stats
    from peripety.testgen.model import Quality, TestCase, TestGenOrder, Verdict

__all__ = ["LookedBack", "Round", "RunState"]


class Round(NamedTuple):
    """A generating round.

    Attributes:
        category: the category that tests are made of; None for the refinement over all of them.
        number: from 1.
    """

    category: str | None
    number: int


@dataclass(frozen=True, slots=True)
class LookedBack:
    """What the last look at a category, or at all of them, came to.

    Attributes:
        rounds: how many rounds of it there were by then.
        reflection: what was said; None when nothing could be had.
    """

    rounds: int
    reflection: Reflection | None

    @property
    def is_content(self) -> bool:
        """Whether nothing was missing."""
        return self.reflection is not None and self.reflection.action is ReflectionAction.COMPLETE


class RunState:
    """How far a run is, by its events so far.

    Args:
        order: what it is to do.

    Attributes:
        order: the same.
        phase: what it is busy with.
        category: the category that it is busy with; None when there is none.
        tests: the tests that are kept, by their ids, in the order in which they were made.
        made: all tests that a round made, dropped ones too, in order.
        verdicts: what became of tests that were run, by their ids.
        dropped: duplicates, in order.
        reflections: all that was said, in order.
        looked_back: the last look at each category, and at all of them (None).
        score: the last assessment; None when there was none.
        rounds: rounds begun, by category; None for the refinement.
        under_way: rounds that have begun and not ended, with the number of events before each.
        given_up: categories, or the refinement (None), of which a question failed.
        exhausted: categories, or the refinement (None), of which the last round wrote nothing.
        has_floor: whether all tests that need no model are there.
        quality: what was measured last.
        is_measured: whether every test that was run is part of that.
        uncertainties: what the run is not sure about, in order.
        was_answered: whether a model answered anything.
        ended: the sums, when it has ended.
    """

    def __init__(self, order: TestGenOrder) -> None:
        self.order = order
        self.phase = Phase.CATEGORY_GENERATION
        self.category: str | None = None
        self.tests: dict[str, TestCase] = {}
        self.made: dict[Round, list[TestCase]] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.dropped: list[DuplicateDropped] = []
        self.reflections: list[Reflection] = []
        self.looked_back: dict[str | None, LookedBack] = {}
        self.score: int | None = None
        self.rounds: dict[str | None, int] = {
            None: 0,
            **{category.name: 0 for category in order.categories},
        }
        self.under_way: dict[Round, int] = {}
        self.given_up: set[str | None] = set()
        self.exhausted: set[str | None] = set()
        self.has_floor = False
        self.quality: Quality | None = None
        self.is_measured = True
        self.uncertainties: list[str] = []
        self.was_answered = False
        self.ended: Stats | None = None
        self._events = 0

    @classmethod
    def fold(cls, events: Iterable[RunEvent], order: TestGenOrder | None = None) -> RunState:
        """The state after some events of a run.

        Args:
            events: from the first one on.
            order: what the run is to do, where no event may have said so.
        """
        state = None if order is None else cls(order)
        for event in events:
            if state is None:
                if not isinstance(event, Started):
                    raise ValueError("a run begins with what it is to do")
                state = cls(event.order)
            state.apply(event)
        if state is None:
            raise ValueError("there is no run without an event")
        return state

    @property
    def total_rounds(self) -> int:
        """Generating rounds so far."""
        return sum(self.rounds.values())

    @property
    def written(self) -> list[TestCase]:
        """The tests that models made and that are kept."""
        return [test for test in self.tests.values() if not test.is_combinatorial]

    @property
    def not_run(self) -> list[TestCase]:
        """The tests that are kept and were not run yet, by round and place in it, whatever came first."""
        waiting = [test for test in self.tests.values() if test.test_id not in self.verdicts]
        floor = [test for test in waiting if test.is_combinatorial]
        places = {test.test_id: test for test in waiting}
        rounds = [test for made in self.made.values() for test in made if test.test_id in places]
        return [*floor, *rounds]

    def of_category(self, category: str) -> list[TestCase]:
        """The tests of a category that models made and that hold what they promise, as far as is known."""
        return [test for test in self.written if test.category == category and self._holds(test)]

    def apply(self, event: RunEvent) -> None:
        """Take in what happened next."""
        match event:
            case Progressed():
                self._progress(event)
            case TestMade():
                self._make(event.test)
                self.tests[event.test.test_id] = event.test
            case DuplicateDropped():
                self._make(event.test)
                self.tests.pop(event.test.test_id, None)
                self.dropped.append(event)
            case TestRan():
                self.verdicts[event.test_id] = event.verdict
                self.is_measured = False
            case Reflected():
                self._reflect(event)
            case Measured():
                self.quality = event.quality
                self.is_measured = True
            case Completed() | Failed():
                self.ended = event.stats
                self.phase, self.category = Phase.COMPLETE, None
            case Started():
                pass
        self._events += 1

    def _progress(self, event: Progressed) -> None:
        self.phase, self.category = event.phase, event.category
        if event.uncertainty:
            self.uncertainties.append(event.uncertainty)
        if event.round:
            self._round(event)
        elif event.end is StepEnd.FAILED:
            self.looked_back[event.category] = LookedBack(self.rounds[event.category], None)
        elif event.end is StepEnd.DONE:
            self.has_floor = True

    def _round(self, event: Progressed) -> None:
        this, end = Round(event.category, event.round), event.end
        if end is None:
            self.rounds[this.category] = this.number
            self.made.setdefault(this, [])
            self.under_way[this] = self._events
            return
        self.under_way.pop(this, None)
        if end is StepEnd.FAILED:
            self.given_up.add(this.category)
        else:
            self.was_answered = True
            if not self.made[this] and not event.uncertainty:
                self.exhausted.add(this.category)

    def _make(self, test: TestCase) -> None:
        if test.is_combinatorial:
            return
        self.was_answered = True
        made = self.made.setdefault(Round(None if test.is_global else test.category, test.round), [])
        # What is dropped after it was run was made before.
        if all(other.test_id != test.test_id for other in made):
            made.append(test)

    def _reflect(self, event: Reflected) -> None:
        reflection = event.reflection
        self.was_answered = True
        self.reflections.append(reflection)
        self.looked_back[reflection.category] = LookedBack(self.rounds[reflection.category], reflection)
        if event.score is not None:
            self.score = event.score

    def _holds(self, test: TestCase) -> bool:
        verdict = self.verdicts.get(test.test_id)
        return verdict is None or verdict.examined.status is TestStatus.PASSED
