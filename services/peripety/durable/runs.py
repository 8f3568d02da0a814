"""Client of durable runs: add, follow, list and read runs of any kind.

A task of some process works on a run and writes its event log. A follower reads the log, so it can be in
another process than the worker, and a lost connection does not matter.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from peripety.durable.model import StoredRun
from peripety.errors import UnavailableError
from peripety.requests import refuse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.durable.model import Recorded, Started
    from peripety.durable.requests import Request
    from peripety.durable.store import RunStore
    from peripety.durable.workers import Workers

__all__ = ["DurableRuns"]

_LOOK_AGAIN_SECONDS = 0.25
_EVENTS_AT_ONCE = 200

R = TypeVar("R", bound=StoredRun)
E = TypeVar("E")


class DurableRuns(Generic[R, E]):
    """The runs of one kind in a database.

    Args:
        store: stores the runs.
        workers: executes the runs.
    """

    def __init__(self, store: RunStore[R, E], workers: Workers[R, E]) -> None:
        self._durable = store
        self._workers = workers

    async def follow(self, run_id: str, after: int = 0) -> AsyncIterator[Recorded[E]]:
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
            log = await self._durable.log(run_id, after, _EVENTS_AT_ONCE) if told is None else None
            for recorded in told or (log.events if log else ()):
                yield recorded
                after = recorded.sequence
            if told or (log is not None and len(log.events) == _EVENTS_AT_ONCE):
                continue
            if log is not None and not log.running:
                return
            if self._workers.stopping:
                raise _stopping()
            if news is not None:
                await news.wait()
            elif not (log and log.abandoned and await self._workers.take_up(run_id)):
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def resume(self, run_id: str, after: int) -> AsyncIterator[Recorded[E]]:
        """Follow a run from the position of a previous follower; raise as `follow` does.

        Raises:
            InvalidArgumentError: the sequence is beyond the last event.
        """
        last = await self._durable.last_sequence(run_id)
        if not 0 <= after <= last:
            raise refuse(".after_sequence", f"must be from 0 to {last}, the last event")
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

    async def _add(self, run: R, request: Request) -> Started[R]:
        """Store a run and start working on it; a repeated request returns the same run."""
        lease = self._workers.new_lease()
        started = await self._durable.add(run, lease, request)
        if started.run is not None:
            await self._workers.work_on(started.run, lease, anew=True)
        return started


def _stopping() -> UnavailableError:
    return UnavailableError("server is stopping; resume the run on any server", code="SERVER_SHUTTING_DOWN")
