"""Runs as their callers use them, whatever they do: added, followed, read.

A run is worked on by a task of some process, and told by its log. Whoever follows it reads that log, so it
does not matter who works, and whether a connection holds.
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
        store: keeps them.
        workers: work on them.
    """

    def __init__(self, store: RunStore[R, E], workers: Workers[R, E]) -> None:
        self._durable = store
        self._workers = workers

    async def follow(self, run_id: str, after: int = 0) -> AsyncIterator[Recorded[E]]:
        """The events of a run after a sequence: recorded ones, then live ones, until it ends or waits.

        A run that nobody works on is taken up where it was.

        Raises:
            NotFoundError: there is no such run, or it was deleted meanwhile.
            UnavailableError: the server stops; the run can be followed elsewhere.
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
        """Follow a run from where a follower was; raises what `follow` raises.

        Raises:
            InvalidArgumentError: there is no event of that sequence.
        """
        last = await self._durable.last_sequence(run_id)
        if not 0 <= after <= last:
            raise refuse(".after_sequence", f"must be from 0 to {last}, the last event")
        async for recorded in self.follow(run_id, after):
            yield recorded

    async def get(self, run_id: str) -> R:
        """A run.

        Raises:
            NotFoundError: there is no such run.
        """
        return await self._durable.get(run_id)

    async def aclose(self) -> None:
        """Stop working: every run can be taken up elsewhere at once, and followers are sent there."""
        await self._workers.aclose()

    async def _add(self, run: R, request: Request) -> Started[R]:
        """Store a run and work on it; again by the same request, return the same one."""
        lease = self._workers.new_lease()
        started = await self._durable.add(run, lease, request)
        if started.run is not None:
            await self._workers.work_on(started.run, lease, anew=True)
        return started


def _stopping() -> UnavailableError:
    return UnavailableError(
        "The server is stopping; resume the run, here or elsewhere", code="SERVER_SHUTTING_DOWN"
    )
