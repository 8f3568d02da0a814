"""Reflection: a model call about the gaps of a category, or an assessment of the whole run.

`RunEvaluation` runs the tests on their subject.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.errors import FailedPreconditionError
from peripety.gateway.types.response import Completed
from peripety.testgen.evaluation.suite import DEFAULT_REPETITIONS, MeasuredSuite, evaluate_test
from peripety.testgen.events import (
    QualityMeasured,
    Reflection,
    ReflectionAction,
    ReflectionCompleted,
    TestAdded,
    TestRan,
)
from peripety.testgen.prompts.user_messages import ASSESSMENT_SCHEMA, REFLECTION_SCHEMA, SuiteGaps
from peripety.testgen.types import TestCase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from peripety.engine.executor import Executor
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import ModelGateway
    from peripety.testgen.events import GenerationEvent
    from peripety.testgen.run.budget import BudgetReservation
    from peripety.testgen.run.generation_round import ModelCaller
    from peripety.testgen.subjects.subject import Subject
    from peripety.testgen.types import CaseVerdict, Category


class RunEvaluation:
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
        worker: Executor,
        events: Sequence[GenerationEvent] = (),
        *,
        repetitions: int = DEFAULT_REPETITIONS,
        mutation: bool = True,
    ) -> None:
        self._subject = subject
        self._worker = worker
        self._repetitions = repetitions
        self._mutation = mutation
        self._suite: MeasuredSuite | None = None
        self._reported: dict[str, CaseVerdict] = {}
        self._tests = {event.test.test_id: event.test for event in events if isinstance(event, TestAdded)}
        self._earlier_runs = [event for event in events if isinstance(event, TestRan)]
        self._earlier_survivors = {
            mutant.mutant_id
            for event in events
            if isinstance(event, QualityMeasured) and event.quality.mutation is not None
            for mutant in event.quality.mutation.survivors
        }

    async def evaluate(self, test: TestCase) -> list[GenerationEvent]:
        """Run a test; return its result, and changed results of other tests."""
        return await self._worker.run(self._evaluate, test)

    async def measure(self) -> QualityMeasured:
        """Measure all tests that were run."""
        return QualityMeasured(await self._worker.run(lambda: self._measured_suite.quality))

    async def widen(self, seconds: float, *, is_idle: bool = False) -> list[GenerationEvent]:
        """Measure further mutants while few survive; return the changed results of tests.

        Args:
            seconds: the limit of the time for it, about.
            is_idle: True if the last tests reached nothing new.
        """
        return await self._worker.run(self._widen, seconds, is_idle)

    def _widen(self, seconds: float, is_idle: bool) -> list[GenerationEvent]:  # noqa: FBT001 - for the worker
        until = time.monotonic() + seconds
        suite = self._measured_suite
        return [
            self._make_test_ran(test_id)
            for test_id in suite.widen(lambda: time.monotonic() < until, is_idle=is_idle)
        ]

    async def find_gaps(self) -> SuiteGaps:
        """Return the gaps of the tests."""
        return await self._worker.run(self._find_gaps)

    async def baseline_tests(self, categories: Sequence[Category]) -> AsyncIterator[TestCase]:
        """Yield the baseline tests, which need no model, in the categories of the run."""
        names = [category.name for category in categories]
        drafts = iter(self._subject.baseline_tests())
        number = 0
        while (draft := await self._worker.run(lambda: next(drafts, None))) is not None:
            number += 1
            yield TestCase(
                test_id=f"floor{number}",
                category=draft.category if draft.category in names else names[0],
                input=draft.input,
                expected_output=draft.expected_output,
                reasoning=draft.reasoning,
                confidence=draft.confidence,
                body=draft.body,
                is_combinatorial=True,
                source=draft.source,
                name=draft.name,
            )

    @property
    def _measured_suite(self) -> MeasuredSuite:
        """The measured suite, computed on first use; this takes time."""
        if self._suite is None:
            self._suite = MeasuredSuite(self._subject, mutation=self._mutation)
            # A verdict is reported again if a later test changes it, or if it kills a further mutant.
            self._reported = {event.test_id: event.verdict for event in self._earlier_runs}
            killed = (verdict.examined.kills for verdict in self._reported.values())
            self._suite.know(self._earlier_survivors.union(*killed))
            for test_id, verdict in self._reported.items():
                self._suite.add(self._tests[test_id], verdict.examined)
        return self._suite

    def _evaluate(self, test: TestCase) -> list[GenerationEvent]:
        suite = self._measured_suite
        mutants = suite.unsettled_mutants
        suite.add(test, evaluate_test(self._subject, test, self._repetitions, mutants=mutants))
        events: list[GenerationEvent] = [self._make_test_ran(test.test_id)]
        others = {pair.other_id for pair in suite.contradictions if pair.test_id == test.test_id}
        return [*events, *(self._make_test_ran(other) for other in sorted(others))]

    def _make_test_ran(self, test_id: str) -> TestRan:
        self._reported[test_id] = self._measured_suite.verdict(test_id)
        return TestRan(test_id, self._reported[test_id])

    def _find_gaps(self) -> SuiteGaps:
        suite = self._measured_suite
        pairs = [(pair.test_id, pair.other_id) for pair in suite.contradictions]
        return SuiteGaps(suite.reached_survivors, suite.uncovered, pairs)


_REFLECTION_OUTPUT_TOKENS = 1_024
_MAX_RESPONSES = 2
"""One response, and one repair."""

_MAX_LISTED_POINTS = 10


@dataclass(frozen=True, slots=True)
class ReflectionStep:
    """A reflection or assessment.

    Attributes:
        category: the category; None for the whole run.
        request: the request.
    """

    category: str | None
    request: GenerateRequest

    @classmethod
    def from_request(cls, category: str | None, request: GenerateRequest) -> ReflectionStep:
        """Return the reflection on a category, or the assessment of the whole run."""
        schema = ASSESSMENT_SCHEMA if category is None else REFLECTION_SCHEMA
        return cls(category, replace(request, schema=schema))

    def reserve(self, caller: ModelCaller) -> BudgetReservation:
        """Reserve budget for the call; raises the errors of `ModelCaller.reserve`."""
        return caller.reserve(self.request, _REFLECTION_OUTPUT_TOKENS, _MAX_RESPONSES)

    async def run(
        self,
        gateway: ModelGateway,
        caller: ModelCaller,
        reservation: BudgetReservation,
    ) -> Mapping[str, Any]:
        """Return the response of the model, valid by the schema.

        Raises:
            LimitReachedError: a limit was reached.
            PeripetyError: the call failed.
        """
        async with (
            caller.call(self.request, reservation) as call,
            closing(gateway.stream(call.request)) as events,
        ):
            async for event in caller.within_time(events):
                if isinstance(event, Completed):
                    call.completion = event.completion
        if call.completion is None or not isinstance(call.completion.value, dict):
            raise FailedPreconditionError("model response is missing", code="ANSWER_INVALID")
        return call.completion.value


def reflection_event(
    category: str | None,
    answer: Mapping[str, Any],
    action: ReflectionAction,
) -> ReflectionCompleted:
    """Convert the JSON response of a model to an event.

    Args:
        category: the category; None for the whole run.
        answer: the response, valid by the schema of the request.
        action: the consequence of the response.
    """
    text = "\n".join([answer["text"], *(f"- {gap}" for gap in answer.get("gaps", ())[:_MAX_LISTED_POINTS])])
    reflection = Reflection(category, text, action, tuple(answer["recommendations"][:_MAX_LISTED_POINTS]))
    return ReflectionCompleted(reflection, answer.get("score"))
