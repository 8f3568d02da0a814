"""Rerun and measurement of existing tests, without a model call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from peripety.answering.log import Pending
from peripety.durable.model import RUNNING
from peripety.errors import FailedPreconditionError
from peripety.testgen.events import Measured, TestRan
from peripety.testgen.loop.examining import Examination
from peripety.testgen.model import TestStatus
from peripety.testgen.stored import Rerun

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.testgen.model import TestCase, Verdict
    from peripety.testgen.sources import KeptSubject, Sources, SubjectSource
    from peripety.testgen.store import RunStore
    from peripety.testgen.stored import Run
    from peripety.workers import Worker

__all__ = ["Reruns"]


class Reruns:
    """Reruns of tests.

    A later test may change the verdict of an earlier one, which is then reported again.

    Args:
        store: the store of runs.
        sources: resolves subjects.
        worker: the worker pool.
    """

    def __init__(self, store: RunStore, sources: Sources, worker: Worker) -> None:
        self._store = store
        self._sources = sources
        self._worker = worker

    async def of_tests(
        self, tests: Sequence[TestCase], source: SubjectSource, *, repetitions: int, mutation: bool
    ) -> AsyncIterator[TestRan | Measured]:
        """Run tests in order, and measure them together; the measurement is the last event.

        Args:
            tests: the tests.
            source: their subject.
            repetitions: the number of runs of each test.
            mutation: True to run them on mutants as well.

        Raises:
            PeripetyError: the subject cannot run tests; see `Sources`.
        """
        kept = await self._sources.kept(source)
        async for event in self._ran(tests, kept, repetitions=repetitions, mutation=mutation):
            yield event

    async def of_run(
        self, run_id: str, *, repetitions: int, mutation: bool
    ) -> AsyncIterator[TestRan | Pending[Measured]]:
        """Run the tests of a run on its subject; the last event stores the results with the run.

        Args:
            run_id: the run.
            repetitions: the number of runs of each test.
            mutation: True to run them on the mutants as well; otherwise the existing mutation score remains.

        Raises:
            NotFoundError: the run does not exist.
            FailedPreconditionError: the run has not ended, or has no subject.
            PeripetyError: its subject can no longer run tests; see `Sources`.
        """
        run = await self._store.get(run_id)
        if run.state == RUNNING:
            raise FailedPreconditionError(
                "run is still active and runs its own tests; wait for its end, or cancel it",
                code="RUN_GOES_ON",
            )
        if run.subject is None:
            raise FailedPreconditionError(
                "run has no subject to run its tests on; send its tests with a subject",
                code="NO_SUBJECT",
            )
        verdicts: dict[str, Verdict] = {}
        tests = [*run.so_far.tests.values()]
        async for event in self._ran(tests, run.subject, repetitions=repetitions, mutation=mutation):
            if isinstance(event, TestRan):
                verdicts[event.test_id] = event.verdict
                yield event
            else:
                yield Pending(partial(self._keep, run, verdicts, event))

    async def _ran(
        self, tests: Sequence[TestCase], kept: KeptSubject, *, repetitions: int, mutation: bool
    ) -> AsyncIterator[TestRan | Measured]:
        subject = await self._sources.subject(kept)
        examination = Examination(subject, self._worker, repetitions=repetitions, mutation=mutation)
        for test in tests:
            for event in await examination.examined(test):
                if isinstance(event, TestRan):
                    yield event
        yield await examination.measured()

    async def _keep(
        self, run: Run, verdicts: dict[str, Verdict], measured: Measured, connection: AsyncConnection
    ) -> Measured:
        quality, before = measured.quality, run.quality
        if quality.mutation is None and before is not None:
            verdicts = {name: _with_kills(one, run.verdicts.get(name)) for name, one in verdicts.items()}
            counting = sum(verdict.counts for verdict in verdicts.values())
            quality = replace(quality, mutation=before.mutation, counting_tests=counting)
        await self._store.keep_rerun(run.run_id, Rerun(verdicts, quality), connection)
        return measured


def _with_kills(verdict: Verdict, before: Verdict | None) -> Verdict:
    """Return a verdict without mutants, with the earlier kills of the test if it still passes."""
    if before is None or verdict.examined.status is not TestStatus.PASSED:
        return verdict
    return replace(
        verdict,
        examined=replace(verdict.examined, kills=before.examined.kills),
        counts=verdict.counts or bool(before.new_kills),
        new_kills=before.new_kills,
    )
