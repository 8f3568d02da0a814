"""The tasks of this process that work on runs, one for each."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from peripety.durable.model import Lease, LostLeaseError, StoredRun
from peripety.durable.recent import Recent
from peripety.durable.recorder import Recorder, nothing_joined
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from peripety.durable.store import RunStore

__all__ = ["Work", "Workers"]

_LEASE_MICROSECONDS = 5_000_000

R_contra = TypeVar("R_contra", contravariant=True)
R = TypeVar("R", bound=StoredRun)
E = TypeVar("E")

_log = logging.getLogger(__name__)


class Work(Protocol[R_contra, E]):
    """Does the work on a run."""

    async def __call__(self, run: R_contra, recorder: Recorder[E], *, anew: bool) -> None:
        """Work until the run has ended or waits.

        Args:
            run: the run, as it stands.
            recorder: records what happens.
            anew: whether the step that the run is in begins, or begins anew; else it goes on where it waited.

        Raises:
            LostLeaseError: somebody else works on the run, or nobody is to.
            PeripetyError: the work cannot go on here; the run can be taken up later.
        """
        ...


@dataclass(eq=False)
class _Shift(Generic[E]):
    """The work of this process on a run, and what it has recorded of it."""

    task: asyncio.Task[None] | None = None
    recent: Recent[E] = field(default_factory=Recent)


class Workers(Generic[R, E]):
    """Works on runs beside the calls that want them.

    A process that dies holds the lease of a run for 5 s at most; one that stops gives it back.

    Args:
        store: keeps the runs.
        work: does the work on one.
        now: the time in microseconds since 1970.
        joined: as in `Recorder`.

    Attributes:
        stopping: whether this process takes up no more runs.
    """

    def __init__(
        self,
        store: RunStore[R, E],
        work: Work[R, E],
        now: Callable[[], int],
        joined: Callable[[E, E], E | None] = nothing_joined,
    ) -> None:
        self._store = store
        self._do = work
        self._now = now
        self._joined = joined
        self._shifts: dict[str, _Shift[E]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopping = False

    def new_lease(self) -> Lease:
        """A lease that nobody else has."""
        return self._renewed(str(uuid.uuid4()))

    async def work_on(self, run: R, lease: Lease, *, anew: bool) -> None:
        """Work on a run, unless this process stops: then leave it to others at once.

        Args:
            run: the run.
            lease: the right to work on it.
            anew: as in `Work`.
        """
        if self.stopping:
            await self._give_back(run, lease)
            return
        shift = _Shift[E]()
        self._shifts[run.run_id] = shift
        shift.task = self._beside(self._work(run, lease, shift, anew=anew))

    async def take_up(self, run_id: str) -> bool:
        """Work on a run that nobody works on; False when there is nothing to take up."""
        lease = self.new_lease()
        run = await self._store.take(run_id, lease)
        if run is None:
            return False
        _log.info("run taken up", extra={"run_id": run_id})
        await self.work_on(run, lease, anew=True)
        return True

    def recent_of(self, run_id: str) -> Recent[E] | None:
        """What this process has recorded of a run; None when it does not work on it."""
        shift = self._shifts.get(run_id)
        return None if shift is None else shift.recent

    async def stop(self, run_id: str) -> None:
        """Stop to work on a run, if this process does."""
        shift = self._shifts.get(run_id)
        if shift is not None and shift.task is not None:
            shift.task.cancel()
            await asyncio.wait([shift.task])

    async def aclose(self) -> None:
        """Stop to work on all runs; anybody may take them up at once."""
        self.stopping = True
        await asyncio.gather(*map(self.stop, list(self._shifts)))
        # Those whose work was done already, and who are giving their leases back.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _renewed(self, name: str) -> Lease:
        return Lease(name, self._now() + _LEASE_MICROSECONDS)

    def _beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # Not in the caller's context, which has a deadline: a run outlives the call.
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _work(self, run: R, lease: Lease, shift: _Shift[E], *, anew: bool) -> None:
        recorder = Recorder(
            self._store, run.run_id, lambda: self._renewed(lease.name), shift.recent, self._joined
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(recorder.keep())
                await self._do(run, recorder, anew=anew)
        except* LostLeaseError:
            _log.info(
                "run given up: it was stopped, or somebody else works on it", extra={"run_id": run.run_id}
            )
        except* PeripetyError as errors:
            _log.warning("run interrupted", extra={"run_id": run.run_id, "codes": list(_codes(errors))})
        finally:
            if self._shifts.get(run.run_id) is shift:
                del self._shifts[run.run_id]
            try:
                await self._give_back(run, lease)
            finally:
                shift.recent.tell()

    async def _give_back(self, run: R, lease: Lease) -> None:
        # Where the database does not work, it ends by itself.
        with suppress(PeripetyError):
            await self._store.release(run.run_id, lease)


def _codes(errors: BaseExceptionGroup[PeripetyError]) -> Iterator[str]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _codes(error)
        else:
            yield error.code
