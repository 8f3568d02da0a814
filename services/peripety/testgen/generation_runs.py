"""Runs of test generation: start, follow, resume, rerun, cancel and delete."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from peripety.core.idempotency.store import PendingResponse
from peripety.core.runs.types import RUNNING, RunUpdate, public_error
from peripety.core.runs.worker import RunClient, RunWorker
from peripety.core.validation import Page, PagePosition, decode_page_token, make_page, resolve_page_size
from peripety.errors import FailedPreconditionError
from peripety.testgen.events import (
    GenerationCompleted,
    GenerationEvent,
    GenerationFailed,
    GenerationStop,
    QualityMeasured,
    TestRan,
)
from peripety.testgen.run.reflection import RunEvaluation
from peripety.testgen.run.runner import GenerationRunner
from peripety.testgen.run.state import GenerationState
from peripety.testgen.run.steps import make_stats
from peripety.testgen.store import RUN_ENDED_STATE, RerunResult, RunRecord, derived_columns
from peripety.testgen.types import TestStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.idempotency.store import RequestKey
    from peripety.core.runs.event_log import RunEventWriter
    from peripety.core.runs.types import StartResult
    from peripety.engine.executor import Executor
    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.types.response import ModelGateway
    from peripety.testgen.run.budget import BudgetAccount
    from peripety.testgen.store import GenerationRunStore, GenerationRunSummary
    from peripety.testgen.subject_source import ResolvedSubject, SubjectResolver, SubjectSource
    from peripety.testgen.types import CaseVerdict, TestCase, TestGenOrder


class GenerationReruns:
    """Reruns of tests.

    A later test may change the verdict of an earlier one, which is then reported again.

    Args:
        store: the store of runs.
        sources: resolves subjects.
        worker: the worker pool.
    """

    def __init__(self, store: GenerationRunStore, sources: SubjectResolver, worker: Executor) -> None:
        self._store: GenerationRunStore = store
        self._sources = sources
        self._worker = worker

    async def rerun_tests(
        self,
        tests: Sequence[TestCase],
        source: SubjectSource,
        *,
        repetitions: int,
        mutation: bool,
    ) -> AsyncIterator[TestRan | QualityMeasured]:
        """Run tests in order, and measure them together; the measurement is the last event.

        Args:
            tests: the tests.
            source: their subject.
            repetitions: the number of runs of each test.
            mutation: True to run them on mutants as well.

        Raises:
            PeripetyError: the subject cannot run tests; see `SubjectResolver`.
        """
        kept = await self._sources.resolve(source)
        async for event in self._run_tests(tests, kept, "", repetitions=repetitions, mutation=mutation):
            yield event

    async def rerun_run(
        self,
        run_id: str,
        *,
        repetitions: int,
        mutation: bool,
    ) -> AsyncIterator[TestRan | PendingResponse[QualityMeasured]]:
        """Run the tests of a run on its subject; the last event stores the results with the run.

        Args:
            run_id: the run.
            repetitions: the number of runs of each test.
            mutation: True to run them on the mutants as well; otherwise the existing mutation score remains.

        Raises:
            NotFoundError: the run does not exist.
            FailedPreconditionError: the run has not ended, or has no subject.
            PeripetyError: its subject can no longer run tests; see `SubjectResolver`.
        """
        run = await self._store.get(run_id)
        if run.state == RUNNING:
            raise FailedPreconditionError(
                "run is still active and runs its own tests; wait for its end, or cancel it",
                code="RUN_NOT_FINISHED",
            )
        if run.subject is None:
            raise FailedPreconditionError(
                "run has no subject to run its tests on; send its tests with a subject",
                code="NO_SUBJECT",
            )
        verdicts: dict[str, CaseVerdict] = {}
        tests = [*run.run_state.tests.values()]
        ran = self._run_tests(
            tests, run.subject, run.order.description, repetitions=repetitions, mutation=mutation
        )
        async for event in ran:
            if isinstance(event, TestRan):
                verdicts[event.test_id] = event.verdict
                yield event
            else:
                yield PendingResponse(partial(self._store_results, run, verdicts, event))

    async def _run_tests(
        self,
        tests: Sequence[TestCase],
        kept: ResolvedSubject,
        task: str,
        *,
        repetitions: int,
        mutation: bool,
    ) -> AsyncIterator[TestRan | QualityMeasured]:
        subject = await self._sources.load(kept, task)
        examination = RunEvaluation(subject, self._worker, repetitions=repetitions, mutation=mutation)
        for test in tests:
            for event in await examination.evaluate(test):
                if isinstance(event, TestRan):
                    yield event
        yield await examination.measure()

    async def _store_results(
        self,
        run: RunRecord,
        verdicts: dict[str, CaseVerdict],
        measured: QualityMeasured,
        connection: AsyncConnection,
    ) -> QualityMeasured:
        quality, before = measured.quality, run.quality
        if quality.mutation is None and before is not None:
            verdicts = {
                name: _with_earlier_kills(one, run.verdicts.get(name)) for name, one in verdicts.items()
            }
            counting = sum(verdict.counts for verdict in verdicts.values())
            quality = replace(quality, mutation=before.mutation, counting_tests=counting)
        await self._store.store_rerun(run.run_id, RerunResult(verdicts, quality), connection)
        return measured


def _with_earlier_kills(verdict: CaseVerdict, before: CaseVerdict | None) -> CaseVerdict:
    """Return a verdict without mutants, with the earlier kills of the test if it still passes."""
    if before is None or verdict.examined.status is not TestStatus.PASSED:
        return verdict
    return replace(
        verdict,
        examined=replace(verdict.examined, kills=before.examined.kills),
        counts=verdict.counts or bool(before.new_kills),
        new_kills=before.new_kills,
    )


_RUN_ID_NAMESPACE = uuid.UUID("0c7d6f39-8a0e-4a4b-9c55-3f1f0a2b7d84")


class GenerationRuns(RunClient[RunRecord, GenerationEvent]):
    """The runs of a database.

    Args:
        store: the store of runs.
        gateway: the model gateway.
        sources: resolves subjects.
        worker: the worker pool that runs tests.
        now: returns the time in microseconds since 1970.
        find_model: returns the data of a model, or of the configured one if None.
    """

    def __init__(
        self,
        store: GenerationRunStore,
        gateway: ModelGateway,
        sources: SubjectResolver,
        worker: Executor,
        now: Callable[[], int],
        find_model: Callable[[str | None], ModelData | None] = lambda _: None,
    ) -> None:
        self._store: GenerationRunStore = store
        self._gateway = gateway
        self._sources = sources
        self._worker = worker
        self._now = now
        self._find_model = find_model
        super().__init__(store, RunWorker(store, self._work, now))

    async def start(
        self,
        order: TestGenOrder,
        source: SubjectSource | None,
        request: RequestKey,
    ) -> StartResult[RunRecord]:
        """Start a run; a repeated request returns the same run (idempotency).

        Args:
            order: the input of the run.
            source: the subject of its tests; None for text only.
            request: the request.

        Raises:
            AlreadyExistsError: the request id was used for a different request; also for all methods below.
            PeripetyError: the subject cannot run tests; see `SubjectResolver`.
        """
        done = await self._store.find_by_request_id(request)
        if done is not None:
            return done
        kept = None
        if source is not None:
            kept = await self._sources.resolve(source)
            await self._sources.load(kept, order.description)  # reports errors of the subject at the start
        now = self._now()
        run_id = str(uuid.uuid5(_RUN_ID_NAMESPACE, request.request_id))
        return await self._start(RunRecord(run_id, order, kept, now, now), request)

    async def list(self, task_id: str, asked_size: int, token: str) -> Page[GenerationRunSummary]:
        """Return a page of runs, newest first, optionally of one task only."""
        size = resolve_page_size(asked_size)
        found = await self._store.list_newest(task_id, decode_page_token(token, has_name=True), size + 1)
        return make_page(found, size, lambda one: PagePosition(one.created, one.run_id))

    async def cancel(self, run_id: str, request: RequestKey) -> RunRecord:
        """Stop a run and retain its tests; a repeated request has no effect.

        Raises:
            NotFoundError: the run does not exist; also for all methods below.
            FailedPreconditionError: the run has ended.
        """

        def decide(run: RunRecord) -> RunUpdate[GenerationEvent]:
            if run.state != RUNNING:
                raise FailedPreconditionError("run has already ended", code="RUN_ENDED")
            stats = make_stats(run.run_state, run.account, GenerationStop.CANCELLED)
            return _run_change(run.run_state, [GenerationCompleted(stats)], run.account)

        if await self._store.find_by_request_id(request) is None:
            # The worker stops first, so that a test that is just being recorded is included.
            await self._workers.stop(run_id)
        await self._store.update(run_id, request, decide)
        await self._workers.stop(run_id)
        return await self._store.get(run_id)

    async def delete(self, run_id: str, request: RequestKey) -> None:
        """Delete a run with its tests; a repeated request has no effect."""
        await self._store.delete(run_id, request)
        await self._workers.stop(run_id)

    async def _work(self, run: RunRecord, recorder: RunEventWriter[GenerationEvent], *, anew: bool) -> None:  # noqa: ARG002
        journal = _RecorderSink(run, recorder)
        try:
            runner = GenerationRunner(
                run.run_id,
                self._gateway,
                run.order,
                None if run.subject is None else await self._sources.load(run.subject, run.order.description),
                self._worker,
                journal,
                events=run.events,
                account=run.account,
                model=self._find_model(run.order.model),
            )
        except Exception as error:  # noqa: BLE001 - the border: something is not any more what it was
            stats = make_stats(run.run_state, run.account, GenerationStop.ERROR)
            await journal.record([GenerationFailed(public_error(error, run.run_id), stats)], run.account)
        else:
            await runner.run()


class _RecorderSink:
    """Event sink that appends to the event log of a run.

    Args:
        run: the run in its current state.
        recorder: the recorder of its event log.
    """

    def __init__(self, run: RunRecord, recorder: RunEventWriter[GenerationEvent]) -> None:
        self._state = GenerationState.fold(run.events, run.order)
        self._recorder = recorder

    async def record(self, events: Sequence[GenerationEvent], account: BudgetAccount) -> None:
        """Record events with the budget account; see `EventSink`."""
        await self._recorder.commit(_run_change(self._state, events, account))


def _run_change(
    state: GenerationState,
    events: Sequence[GenerationEvent],
    account: BudgetAccount,
) -> RunUpdate[GenerationEvent]:
    """Return the change of a run by events, and apply the events to its state."""
    for event in events:
        state.apply(event)
    return RunUpdate(
        events,
        None if state.ended is None else RUN_ENDED_STATE,
        derived_columns(state, account),
    )
