"""Executes leased runs, claims abandoned ones; follow, list, cancel.

Client of durable runs: add, follow, list and read runs of any kind.

A task of some process works on a run and writes its event log. A follower reads the log, so it can be in
another process than the worker, and a lost connection does not matter.

Workers of durable runs: one task of this process per run.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from peripety.core.runs.event_log import RunEventBuffer, RunEventWriter, no_coalescing
from peripety.core.runs.types import Lease, LostLeaseError, StoredRun
from peripety.core.validation import field_error
from peripety.errors import PeripetyError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from peripety.core.idempotency.store import RequestKey
    from peripety.core.runs.store import RunStore
    from peripety.core.runs.types import RecordedEvent, StartResult


_POLL_SECONDS = 0.25
_EVENTS_PER_PAGE = 200

R = TypeVar("R", bound=StoredRun)
E = TypeVar("E")


class RunClient(Generic[R, E]):
    """The runs of one kind in a database.

    Args:
        store: stores the runs.
        workers: executes the runs.
    """

    def __init__(self, store: RunStore[R, E], workers: RunWorker[R, E]) -> None:
        self._durable = store
        self._workers = workers

    async def follow(self, run_id: str, after: int = 0) -> AsyncIterator[RecordedEvent[E]]:
        """Yield the events of a run after a sequence, recorded and live, until it ends or waits.

        An abandoned run is claimed and continued.

        Raises:
            NotFoundError: the run does not exist or was deleted meanwhile.
            UnavailableError: the server is stopping; another process can follow the run.
        """
        while True:
            recent = self._workers.recent_of(run_id)
            news = None if recent is None else recent.news
            told = None if recent is None else recent.after(after)
            log = await self._durable.log(run_id, after, _EVENTS_PER_PAGE) if told is None else None
            for recorded in told or (log.events if log else ()):
                yield recorded
                after = recorded.sequence
            if told or (log is not None and len(log.events) == _EVENTS_PER_PAGE):
                continue
            if log is not None and not log.running:
                return
            if self._workers.stopping:
                raise _stopping_error()
            if news is not None:
                await news.wait()
            elif not (log and log.abandoned and await self._workers.take_up(run_id)):
                await asyncio.sleep(_POLL_SECONDS)

    async def resume(self, run_id: str, after: int) -> AsyncIterator[RecordedEvent[E]]:
        """Follow a run from the position of a previous follower; raise as `follow` does.

        Raises:
            InvalidArgumentError: the sequence is beyond the last event.
        """
        last = await self._durable.last_sequence(run_id)
        if not 0 <= after <= last:
            raise field_error(".after_sequence", f"must be from 0 to {last}, the last event")
        async for recorded in self.follow(run_id, after):
            yield recorded

    async def get(self, run_id: str) -> R:
        """Return a run.

        Raises:
            NotFoundError: the run does not exist.
        """
        return await self._durable.get(run_id)

    async def aclose(self) -> None:
        """Stop working: release all runs, and end followers with an error that makes them reconnect."""
        await self._workers.aclose()

    async def _add(self, run: R, request: RequestKey) -> StartResult[R]:
        """Store a run and start working on it; a repeated request returns the same run."""
        lease = self._workers.new_lease()
        started = await self._durable.add(run, lease, request)
        if started.run is not None:
            await self._workers.work_on(started.run, lease, anew=True)
        return started


def _stopping_error() -> UnavailableError:
    return UnavailableError("server is stopping; resume the run on any server", code="SERVER_SHUTTING_DOWN")


_LEASE_MICROSECONDS = 5_000_000

R_contra = TypeVar("R_contra", contravariant=True)

_log = logging.getLogger(__name__)


class RunFunction(Protocol[R_contra, E]):
    """Callable that executes a run."""

    async def __call__(self, run: R_contra, recorder: RunEventWriter[E], *, anew: bool) -> None:
        """Work until the run has ended or waits.

        Args:
            run: the run in its current state.
            recorder: records the events.
            anew: True to start or restart the current step of the run; False to continue where it waited.

        Raises:
            LostLeaseError: another worker has the run, or the run has no more work to do.
            PeripetyError: the work cannot continue in this process; the run can be claimed later.
        """
        ...


@dataclass(eq=False)
class _ActiveRun(Generic[E]):
    """The task of this process that works on a run, and the events it has recorded."""

    task: asyncio.Task[None] | None = None
    recent: RunEventBuffer[E] = field(default_factory=RunEventBuffer)


class RunWorker(Generic[R, E]):
    """Executor of runs, independent of the calls that started them.

    A process that crashes holds the lease of a run for 5 s at most; a process that stops releases it.

    Args:
        store: stores the runs.
        work: executes a run.
        now: returns the time in microseconds since 1970.
        joined: merges two neighbouring events, or returns None to leave them separate.

    Attributes:
        stopping: True if this process claims no more runs.
    """

    def __init__(
        self,
        store: RunStore[R, E],
        work: RunFunction[R, E],
        now: Callable[[], int],
        joined: Callable[[E, E], E | None] = no_coalescing,
    ) -> None:
        self._store = store
        self._do = work
        self._now = now
        self._joined = joined
        self._shifts: dict[str, _ActiveRun[E]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopping = False

    def new_lease(self) -> Lease:
        """Return a lease with a new unique name."""
        return self._renewed(str(uuid.uuid4()))

    async def work_on(self, run: R, lease: Lease, *, anew: bool) -> None:
        """Start working on a run, or release it at once if this process is stopping.

        Args:
            run: the run.
            lease: the lease of the run.
            anew: True to start or restart the current step; False to continue where it waited.
        """
        if self.stopping:
            await self._give_back(run, lease)
            return
        shift = _ActiveRun[E]()
        self._shifts[run.run_id] = shift
        shift.task = self._beside(self._work(run, lease, shift, anew=anew))

    async def take_up(self, run_id: str) -> bool:
        """Claim an abandoned run and work on it; return False if the run is not abandoned."""
        lease = self.new_lease()
        run = await self._store.take(run_id, lease)
        if run is None:
            return False
        _log.info("run claimed", extra={"run_id": run_id})
        await self.work_on(run, lease, anew=True)
        return True

    def recent_of(self, run_id: str) -> RunEventBuffer[E] | None:
        """Return the event buffer of a run, or None if this process does not work on it."""
        shift = self._shifts.get(run_id)
        return None if shift is None else shift.recent

    async def stop(self, run_id: str) -> None:
        """Stop working on a run if this process does."""
        shift = self._shifts.get(run_id)
        if shift is not None and shift.task is not None:
            shift.task.cancel()
            await asyncio.wait([shift.task])

    async def aclose(self) -> None:
        """Stop working on all runs and release them."""
        self.stopping = True
        await asyncio.gather(*map(self.stop, list(self._shifts)))
        # Tasks whose work was done already and that are releasing their leases.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _renewed(self, name: str) -> Lease:
        return Lease(name, self._now() + _LEASE_MICROSECONDS)

    def _beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # Outside the caller's context, which has a deadline: a run outlives the call.
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _work(self, run: R, lease: Lease, shift: _ActiveRun[E], *, anew: bool) -> None:
        recorder = RunEventWriter(
            self._store, run.run_id, lambda: self._renewed(lease.name), shift.recent, self._joined
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(recorder.keep())
                await self._do(run, recorder, anew=anew)
        except* LostLeaseError:
            _log.info(
                "run lease lost: it was stopped, or another worker has it", extra={"run_id": run.run_id}
            )
        except* PeripetyError as errors:
            _log.warning("run interrupted", extra={"run_id": run.run_id, "codes": list(_error_codes(errors))})
        finally:
            if self._shifts.get(run.run_id) is shift:
                del self._shifts[run.run_id]
            try:
                await self._give_back(run, lease)
            finally:
                shift.recent.tell()

    async def _give_back(self, run: R, lease: Lease) -> None:
        # If the database does not work, the lease expires by itself.
        with suppress(PeripetyError):
            await self._store.release(run.run_id, lease)


def _error_codes(errors: BaseExceptionGroup[PeripetyError]) -> Iterator[str]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _error_codes(error)
        else:
            yield error.code
