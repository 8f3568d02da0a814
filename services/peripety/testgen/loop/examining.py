"""Evaluation of the tests of a run on its subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.testgen.asking.questions import Missing
from peripety.testgen.events import DuplicateDropped, Measured, TestMade, TestRan
from peripety.testgen.measuring.examining import REPETITIONS, examine
from peripety.testgen.measuring.suite import MeasuredSuite
from peripety.testgen.model import TestCase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.events import RunEvent
    from peripety.testgen.model import Category, Verdict
    from peripety.testgen.subjects.subject import Subject
    from peripety.workers import Worker

__all__ = ["Examination"]


class Examination:
    """The results of the tests of a run on its subject.

    Args:
        subject: the subject.
        worker: the worker pool.
        events: the earlier events of the run.
        repetitions: the number of runs of each test.
        mutation: True to run tests on the mutants of the subject as well.
    """

    def __init__(
        self,
        subject: Subject,
        worker: Worker,
        events: Sequence[RunEvent] = (),
        *,
        repetitions: int = REPETITIONS,
        mutation: bool = True,
    ) -> None:
        self._subject = subject
        self._worker = worker
        self._repetitions = repetitions
        self._mutation = mutation
        self._suite: MeasuredSuite | None = None
        self._told: dict[str, Verdict] = {}
        self._tests = {event.test.test_id: event.test for event in events if isinstance(event, TestMade)}
        self._before = [event for event in events if isinstance(event, TestRan)]

    async def examined(self, test: TestCase) -> list[RunEvent]:
        """Run a test; return its result, and changed results of other tests."""
        return await self._worker.run(self._examined, test)

    async def measured(self) -> Measured:
        """Measure all tests that were run."""
        return Measured(await self._worker.run(lambda: self._measured_suite.quality))

    async def missing(self) -> Missing:
        """Return the gaps of the tests."""
        return await self._worker.run(self._missing)

    async def floor(self, categories: Sequence[Category]) -> list[TestCase]:
        """Return the baseline tests, which need no model, in the categories of the run."""
        names = [category.name for category in categories]
        drafts = await self._worker.run(lambda: [*self._subject.floor()])
        return [
            TestCase(
                test_id=f"floor{number}",
                category=draft.category if draft.category in names else names[0],
                input=draft.input,
                expected_output=draft.expected_output,
                reasoning=draft.reasoning,
                confidence=draft.confidence,
                body=draft.body,
                is_combinatorial=True,
            )
            for number, draft in enumerate(drafts, start=1)
        ]

    @property
    def _measured_suite(self) -> MeasuredSuite:
        """The measured suite, computed on first use; this takes time."""
        if self._suite is None:
            self._suite = MeasuredSuite(self._subject, mutation=self._mutation)
            for event in self._before:
                # A verdict is reported again if a later test changes it; the results of running it stay the
                # same.
                if event.test_id not in self._told:
                    self._suite.add(self._tests[event.test_id], event.verdict.examined)
                self._told[event.test_id] = event.verdict
        return self._suite

    def _examined(self, test: TestCase) -> list[RunEvent]:
        suite = self._measured_suite
        suite.add(test, examine(self._subject, test, self._repetitions, mutation=self._mutation))
        events: list[RunEvent] = [self._ran(test.test_id)]
        repeated = suite.repeated(test.test_id)
        if repeated is not None:
            events.append(DuplicateDropped(test, *repeated))
        others = {pair.other_id for pair in suite.contradictions if pair.test_id == test.test_id}
        return [*events, *(self._ran(other) for other in sorted(others))]

    def _ran(self, test_id: str) -> TestRan:
        self._told[test_id] = self._measured_suite.verdict(test_id)
        return TestRan(test_id, self._told[test_id])

    def _missing(self) -> Missing:
        suite = self._measured_suite
        pairs = [(pair.test_id, pair.other_id) for pair in suite.contradictions]
        return Missing(suite.survivors, suite.uncovered, pairs)
