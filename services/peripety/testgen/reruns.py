"""Tests that were made before are run again, and measured; no model is asked."""

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
    """Runs tests again.

    A later test may change what an earlier one is worth, which is told again then.

    Args:
        store: keeps the runs whose tests are run.
        sources: find what tests are run on.
        worker: runs them.
    """

    def __init__(self, store: RunStore, sources: Sources, worker: Worker) -> None:
        self._store = store
        self._sources = sources
        self._worker = worker

    async def of_tests(
        self, tests: Sequence[TestCase], source: SubjectSource, *, repetitions: int, mutation: bool
    ) -> AsyncIterator[TestRan | Measured]:
        """Run tests in their order, and measure them together; that is told last.

        Args:
            tests: the tests.
            source: what they are run on.
            repetitions: how often each is run.
            mutation: whether they are run on the mutants of that as well.

        Raises:
            PeripetyError: tests cannot be run on that; see `Sources`.
        """
        kept = await self._sources.kept(source)
        async for event in self._ran(tests, kept, repetitions=repetitions, mutation=mutation):
            yield event

    async def of_run(
        self, run_id: str, *, repetitions: int, mutation: bool
    ) -> AsyncIterator[TestRan | Pending[Measured]]:
        """Run the tests of a run on its subject; the last event keeps what they showed with the run.

        Args:
            run_id: the run.
            repetitions: how often each is run.
            mutation: whether they are run on the mutants of the subject as well; else the run keeps the score
                that it has.

        Raises:
            NotFoundError: there is no such run.
            FailedPreconditionError: the run has not ended, or no subject.
            PeripetyError: tests cannot be run on its subject any more; see `Sources`.
        """
        run = await self._store.get(run_id)
        if run.state == RUNNING:
            raise FailedPreconditionError(
                "The run goes on, and runs its tests itself: wait for its end, or cancel it",
                code="RUN_GOES_ON",
            )
        if run.subject is None:
            raise FailedPreconditionError(
                "The run has nothing that its tests could be run on: send its tests, with a subject",
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
    """What a test is worth where it was not run on mutants: while it passes, it kills what it did before."""
    if before is None or verdict.examined.status is not TestStatus.PASSED:
        return verdict
    return replace(
        verdict,
        examined=replace(verdict.examined, kills=before.examined.kills),
        counts=verdict.counts or bool(before.new_kills),
        new_kills=before.new_kills,
    )
