"""The tasks of this process that work on runs, one for each."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.errors import PeripetyError
from peripety.gateway.agents.changes import Lease, LostLeaseError
from peripety.gateway.agents.recorder import Recorder
from peripety.gateway.agents.working import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.gateway.agents.model import Run
    from peripety.gateway.agents.store import RunStore
    from peripety.gateway.conversations.conversations import Conversations

__all__ = ["Workers"]

_LEASE_MICROSECONDS = 5_000_000

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Shift:
    """The work of this process on a run, and the next moment at which its log has grown."""

    task: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def recorded(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


class Workers:
    """Works on runs beside the calls that want them.

    A process that dies holds the lease of a run for 5 s at most; one that stops gives it back.

    Args:
        store: keeps the runs.
        conversations: hold their histories.
        now: the time in microseconds since 1970.
    """

    def __init__(self, store: RunStore, conversations: Conversations, now: Callable[[], int]) -> None:
        self._store = store
        self._conversations = conversations
        self._now = now
        self._shifts: dict[str, _Shift] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopping = False

    def new_lease(self) -> Lease:
        """A lease that nobody else has."""
        return self._renewed(str(uuid.uuid4()))

    def work_on(self, run: Run, lease: Lease, *, anew: bool) -> None:
        """Work on a run.

        Args:
            run: the run.
            lease: the right to work on it.
            anew: as in `Work.go`.
        """
        shift = _Shift()
        self._shifts[run.run_id] = shift
        # Not in the caller's context, which has a deadline: the run outlives the call.
        shift.task = asyncio.create_task(
            self._work(run, lease, shift, anew=anew), context=contextvars.Context()
        )
        self._tasks.add(shift.task)
        shift.task.add_done_callback(self._tasks.discard)

    async def take_up(self, run_id: str) -> bool:
        """Work on a run that nobody works on; False when there is nothing to take up."""
        lease = self.new_lease()
        run = await self._store.take(run_id, lease)
        if run is None:
            return False
        _log.info("run taken up", extra={"run_id": run_id})
        self.work_on(run, lease, anew=True)
        return True

    def news_of(self, run_id: str) -> asyncio.Event | None:
        """What is set when the log of a run has grown, or this process stops to work on it.

        None when this process does not work on the run.
        """
        shift = self._shifts.get(run_id)
        return None if shift is None else shift.news

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

    async def _work(self, run: Run, lease: Lease, shift: _Shift, *, anew: bool) -> None:
        recorder = Recorder(self._store, run.run_id, lambda: self._renewed(lease.name), shift.recorded)
        work = Work(run, self._conversations, recorder, self._now)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(recorder.keep())
                await work.go(anew=anew)
        except* LostLeaseError:
            _log.info(
                "run given up: it was stopped, or somebody else works on it", extra={"run_id": run.run_id}
            )
        except* PeripetyError as errors:
            _log.warning("run interrupted", extra={"run_id": run.run_id, "codes": list(_codes(errors))})
        finally:
            if self._shifts.get(run.run_id) is shift:
                del self._shifts[run.run_id]
            with suppress(PeripetyError):
                await self._store.release(run.run_id, lease)
            shift.recorded()


def _codes(errors: BaseExceptionGroup[PeripetyError]) -> Iterator[str]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _codes(error)
        else:
            yield error.code
