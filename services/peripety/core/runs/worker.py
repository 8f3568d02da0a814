"""Worker and client of durable runs: execute, claim abandoned ones, follow, list and cancel.

One task of some process works on a run and writes its event log. A follower reads the log, so it can be in
another process than the worker, and a lost connection does not matter.
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
from peripety.errors import PeripetyError, UnavailableError, field_error

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
        self._store = store
        self._workers = workers

    async def follow(self, run_id: str, after: int = 0) -> AsyncIterator[RecordedEvent[E]]:
        """Yield the events of a run after a sequence, recorded and live, until it ends or waits.

        An abandoned run is claimed and continued.

        Raises:
            NotFoundError: the run does not exist or was deleted meanwhile.
            UnavailableError: the server is stopping; another process can follow the run.
        """
        while True:
            recent = self._workers.buffer_for(run_id)
            news = None if recent is None else recent.news
            told = None if recent is None else recent.since(after)
            log = await self._store.read_log(run_id, after, _EVENTS_PER_PAGE) if told is None else None
            for recorded in told or (log.events if log else ()):
                yield recorded
                after = recorded.sequence
            if told or (log is not None and len(log.events) == _EVENTS_PER_PAGE):
                continue
            if log is not None and not log.is_running:
                return
            if self._workers.is_stopping:
                raise _stopping_error()
            if news is not None:
                await news.wait()
            elif not (log and log.is_abandoned and await self._workers.claim_abandoned(run_id)):
                await asyncio.sleep(_POLL_SECONDS)

    async def resume(self, run_id: str, after: int) -> AsyncIterator[RecordedEvent[E]]:
        """Follow a run from the position of a previous follower; raise as `follow` does.

        Raises:
            InvalidArgumentError: the sequence is beyond the last event.
        """
        last = await self._store.last_sequence(run_id)
        if not 0 <= after <= last:
            raise field_error(".after_sequence", f"must be from 0 to {last}, the last event")
        async for recorded in self.follow(run_id, after):
            yield recorded

    async def get(self, run_id: str) -> R:
        """Return a run.

        Raises:
            NotFoundError: the run does not exist.
        """
        return await self._store.get(run_id)

    async def aclose(self) -> None:
        """Stop working: release all runs, and end followers with an error that makes them reconnect."""
        await self._workers.aclose()

    async def _start(self, run: R, request: RequestKey) -> StartResult[R]:
        """Store a run and start working on it; a repeated request returns the same run."""
        lease = self._workers.new_lease()
        started = await self._store.add(run, lease, request)
        if started.run is not None:
            await self._workers.execute(started.run, lease, restart=True)
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
    buffer: RunEventBuffer[E] = field(default_factory=RunEventBuffer)


class RunWorker(Generic[R, E]):
    """Executor of runs, independent of the calls that started them.

    A process that crashes holds the lease of a run for 5 s at most; a process that stops releases it.

    Args:
        store: stores the runs.
        work: executes a run.
        now: returns the time in microseconds since 1970.
        coalesce: merges two neighbouring events, or returns None to leave them separate.

    Attributes:
        is_stopping: True if this process claims no more runs.
    """

    def __init__(
        self,
        store: RunStore[R, E],
        work: RunFunction[R, E],
        now: Callable[[], int],
        coalesce: Callable[[E, E], E | None] = no_coalescing,
    ) -> None:
        self._store = store
        self._run_function = work
        self._now = now
        self._coalesce = coalesce
        self._active_runs: dict[str, _ActiveRun[E]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_stopping = False

    def new_lease(self) -> Lease:
        """Return a lease with a new unique name."""
        return self._make_lease(str(uuid.uuid4()))

    async def execute(self, run: R, lease: Lease, *, restart: bool) -> None:
        """Start working on a run, or release it at once if this process is stopping.

        Args:
            run: the run.
            lease: the lease of the run.
            anew: True to start or restart the current step; False to continue where it waited.
        """
        if self.is_stopping:
            await self._release_lease(run, lease)
            return
        shift = _ActiveRun[E]()
        self._active_runs[run.run_id] = shift
        shift.task = self._start_task(self._execute(run, lease, shift, anew=restart))

    async def claim_abandoned(self, run_id: str) -> bool:
        """Claim an abandoned run and work on it; return False if the run is not abandoned."""
        lease = self.new_lease()
        run = await self._store.acquire_lease(run_id, lease)
        if run is None:
            return False
        _log.info("run claimed", extra={"run_id": run_id})
        await self.execute(run, lease, restart=True)
        return True

    def buffer_for(self, run_id: str) -> RunEventBuffer[E] | None:
        """Return the event buffer of a run, or None if this process does not work on it."""
        shift = self._active_runs.get(run_id)
        return None if shift is None else shift.buffer

    @property
    def active_count(self) -> int:
        """The number of runs that this process works on."""
        return len(self._active_runs)

    async def stop(self, run_id: str) -> None:
        """Stop working on a run if this process does."""
        shift = self._active_runs.get(run_id)
        if shift is not None and shift.task is not None:
            shift.task.cancel()
            await asyncio.wait([shift.task])

    async def aclose(self) -> None:
        """Stop working on all runs and release them."""
        self.is_stopping = True
        await asyncio.gather(*map(self.stop, list(self._active_runs)))
        # Tasks whose work was done already and that are releasing their leases.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _make_lease(self, name: str) -> Lease:
        return Lease(name, self._now() + _LEASE_MICROSECONDS)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # Outside the caller's context, which has a deadline: a run outlives the call.
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _execute(self, run: R, lease: Lease, shift: _ActiveRun[E], *, anew: bool) -> None:
        recorder = RunEventWriter(
            self._store,
            run.run_id,
            lambda: self._make_lease(lease.name),
            shift.buffer,
            self._coalesce,
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(recorder.renew_lease())
                await self._run_function(run, recorder, anew=anew)
        except* LostLeaseError:
            _log.info(
                "run lease lost: it was stopped, or another worker has it",
                extra={"run_id": run.run_id},
            )
        except* PeripetyError as errors:
            _log.warning("run interrupted", extra={"run_id": run.run_id, "codes": list(_error_codes(errors))})
        finally:
            if self._active_runs.get(run.run_id) is shift:
                del self._active_runs[run.run_id]
            try:
                await self._release_lease(run, lease)
            finally:
                shift.buffer.notify()

    async def _release_lease(self, run: R, lease: Lease) -> None:
        # If the database does not work, the lease expires by itself.
        with suppress(PeripetyError):
            await self._store.release_lease(run.run_id, lease)


def _error_codes(errors: BaseExceptionGroup[PeripetyError]) -> Iterator[str]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _error_codes(error)
        else:
            yield error.code
