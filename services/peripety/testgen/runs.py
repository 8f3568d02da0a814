"""Test generation runs: start, follow, resume, cancel and delete."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from peripety.durable.failures import public_error
from peripety.durable.model import RUNNING, Change
from peripety.durable.runs import DurableRuns
from peripety.durable.workers import Workers
from peripety.errors import FailedPreconditionError
from peripety.pages import Page, Position, page_of, page_size, position_in
from peripety.testgen.events import Completed, Failed, RunEvent, StoppedBy
from peripety.testgen.loop.running import Runner
from peripety.testgen.loop.state import RunState
from peripety.testgen.loop.stats import stats_of
from peripety.testgen.store import kept_of
from peripety.testgen.stored import ENDED, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.durable.model import Started
    from peripety.durable.recorder import Recorder
    from peripety.durable.requests import Request
    from peripety.gateway.model import ModelGateway
    from peripety.testgen.loop.ledger import Account
    from peripety.testgen.model import TestGenOrder
    from peripety.testgen.sources import Sources, SubjectSource
    from peripety.testgen.store import RunStore
    from peripety.testgen.stored import RunSummary
    from peripety.workers import Worker

__all__ = ["Runs"]

_RUNS = uuid.UUID("0c7d6f39-8a0e-4a4b-9c55-3f1f0a2b7d84")


class Runs(DurableRuns[Run, RunEvent]):
    """The runs of a database.

    Args:
        store: the store of runs.
        gateway: the model gateway.
        sources: resolves subjects.
        worker: the worker pool that runs tests.
        now: returns the time in microseconds since 1970.
    """

    def __init__(
        self,
        store: RunStore,
        gateway: ModelGateway,
        sources: Sources,
        worker: Worker,
        now: Callable[[], int],
    ) -> None:
        self._store = store
        self._gateway = gateway
        self._sources = sources
        self._worker = worker
        self._now = now
        super().__init__(store, Workers(store, self._work, now))

    async def start(
        self, order: TestGenOrder, source: SubjectSource | None, request: Request
    ) -> Started[Run]:
        """Start a run; a repeated request returns the same run (idempotency).

        Args:
            order: the input of the run.
            source: the subject of its tests; None for text only.
            request: the request.

        Raises:
            AlreadyExistsError: the request id was used for a different request; also for all methods below.
            PeripetyError: the subject cannot run tests; see `Sources`.
        """
        done = await self._store.started_by(request)
        if done is not None:
            return done
        kept = None
        if source is not None:
            kept = await self._sources.kept(source)
            await self._sources.subject(kept)  # reports errors of the subject at the start
        now = self._now()
        run_id = str(uuid.uuid5(_RUNS, request.request_id))
        return await self._add(Run(run_id, order, kept, now, now), request)

    async def list(self, task_id: str, asked_size: int, token: str) -> Page[RunSummary]:
        """Return a page of runs, newest first, optionally of one task only."""
        size = page_size(asked_size)
        found = await self._store.newest(task_id, position_in(token, named=True), size + 1)
        return page_of(found, size, lambda one: Position(one.created, one.run_id))

    async def cancel(self, run_id: str, request: Request) -> Run:
        """Stop a run and retain its tests; a repeated request has no effect.

        Raises:
            NotFoundError: the run does not exist; also for all methods below.
            FailedPreconditionError: the run has ended.
        """

        def decide(run: Run) -> Change[RunEvent]:
            if run.state != RUNNING:
                raise FailedPreconditionError("run has already ended", code="RUN_ENDED")
            stats = stats_of(run.so_far, run.account, StoppedBy.CANCELLED)
            return _changed(run.so_far, [Completed(stats)], run.account)

        if await self._store.started_by(request) is None:
            # The worker stops first, so that a test that is just being recorded is included.
            await self._workers.stop(run_id)
        await self._store.change(run_id, request, decide)
        await self._workers.stop(run_id)
        return await self._store.get(run_id)

    async def delete(self, run_id: str, request: Request) -> None:
        """Delete a run with its tests; a repeated request has no effect."""
        await self._store.delete(run_id, request)
        await self._workers.stop(run_id)

    async def _work(self, run: Run, recorder: Recorder[RunEvent], *, anew: bool) -> None:  # noqa: ARG002
        journal = _Journal(run, recorder)
        try:
            runner = Runner(
                run.run_id,
                self._gateway,
                run.order,
                None if run.subject is None else await self._sources.subject(run.subject),
                self._worker,
                journal,
                events=run.events,
                account=run.account,
            )
        except Exception as error:  # noqa: BLE001 - the border: something is not any more what it was
            stats = stats_of(run.so_far, run.account, StoppedBy.ERROR)
            await journal.record([Failed(public_error(error, run.run_id), stats)], run.account)
        else:
            await runner.go()


class _Journal:
    """Event sink that appends to the event log of a run.

    Args:
        run: the run in its current state.
        recorder: the recorder of its event log.
    """

    def __init__(self, run: Run, recorder: Recorder[RunEvent]) -> None:
        self._state = RunState.fold(run.events, run.order)
        self._recorder = recorder

    async def record(self, events: Sequence[RunEvent], account: Account) -> None:
        """Record events with the budget account; see `Journal`."""
        await self._recorder.commit(_changed(self._state, events, account))


def _changed(state: RunState, events: Sequence[RunEvent], account: Account) -> Change[RunEvent]:
    """Return the change of a run by events, and apply the events to its state."""
    for event in events:
        state.apply(event)
    return Change(events, None if state.ended is None else ENDED, kept_of(state, account))
