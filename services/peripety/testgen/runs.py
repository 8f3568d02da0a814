"""Runs as their callers use them: started, followed, taken up, stopped."""

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
        store: keeps them.
        gateway: answers their questions.
        sources: find what tests are run on.
        worker: runs them.
        now: the time in microseconds since 1970.
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
        """Start a run; again by the same request, return the same one.

        Args:
            order: what it is to do.
            source: what its tests are run on; None for nothing.
            request: the request.

        Raises:
            AlreadyExistsError: the request id was used for a different request, as in all that follow.
            PeripetyError: tests cannot be run on that; see `Sources`.
        """
        done = await self._store.started_by(request)
        if done is not None:
            return done
        kept = None
        if source is not None:
            kept = await self._sources.kept(source)
            await self._sources.subject(kept)  # so that who starts the run is told what is wrong with it
        now = self._now()
        run_id = str(uuid.uuid5(_RUNS, request.request_id))
        return await self._add(Run(run_id, order, kept, now, now), request)

    async def list(self, task_id: str, asked_size: int, token: str) -> Page[RunSummary]:
        """A page of runs, newest first; only those of a task when one is named."""
        size = page_size(asked_size)
        found = await self._store.newest(task_id, position_in(token, named=True), size + 1)
        return page_of(found, size, lambda one: Position(one.created, one.run_id))

    async def cancel(self, run_id: str, request: Request) -> Run:
        """Stop a run, and keep its tests; again by the same request, nothing changes.

        Raises:
            NotFoundError: there is no such run, as in all that follow.
            FailedPreconditionError: the run has ended.
        """

        def decide(run: Run) -> Change[RunEvent]:
            if run.state != RUNNING:
                raise FailedPreconditionError(
                    "The run has ended, so there is nothing to stop", code="RUN_ENDED"
                )
            stats = stats_of(run.so_far, run.account, StoppedBy.CANCELLED)
            return _changed(run.so_far, [Completed(stats)], run.account)

        if await self._store.started_by(request) is None:
            # First, so that a test that is just being written down is kept, too.
            await self._workers.stop(run_id)
        await self._store.change(run_id, request, decide)
        await self._workers.stop(run_id)
        return await self._store.get(run_id)

    async def delete(self, run_id: str, request: Request) -> None:
        """Delete a run with its tests; again by the same request, nothing happens."""
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
    """Writes a run down as its log has it.

    Args:
        run: the run, as it stands.
        recorder: records what happens.
    """

    def __init__(self, run: Run, recorder: Recorder[RunEvent]) -> None:
        self._state = RunState.fold(run.events, run.order)
        self._recorder = recorder

    async def record(self, events: Sequence[RunEvent], account: Account) -> None:
        """Record events with the account that goes with them; see `Journal`."""
        await self._recorder.commit(_changed(self._state, events, account))


def _changed(state: RunState, events: Sequence[RunEvent], account: Account) -> Change[RunEvent]:
    """What becomes of a run by events, which its state takes in."""
    for event in events:
        state.apply(event)
    return Change(events, None if state.ended is None else ENDED, kept_of(state, account))
