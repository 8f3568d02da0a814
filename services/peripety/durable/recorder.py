"""Records what happens in a run while it happens, and keeps the lease of whoever works on it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from peripety.durable.model import Change

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.durable.model import Lease
    from peripety.durable.recent import Recent
    from peripety.durable.store import RunStore

__all__ = ["Recorder", "nothing_joined"]

_RENEW_SECONDS = 1.0
_PAUSE_SECONDS = 0.05

E = TypeVar("E")


def nothing_joined(_before: Any, _after: Any) -> None:
    """Two events stay two, whatever they are."""


class Recorder(Generic[E]):
    """The log of one run, as it is written until the run ends or waits.

    Pieces of something are recorded together, some twenty times a second at most, and neighbouring pieces as
    one; what matters is recorded at once, behind all that was told before it.

    Args:
        store: keeps the log.
        run_id: the run.
        lease: gives a lease that ends later than the one before.
        recent: is told what was recorded.
        joined: two neighbouring events as one; None when they stay two.
    """

    def __init__(
        self,
        store: RunStore[Any, E],
        run_id: str,
        lease: Callable[[], Lease],
        recent: Recent[E],
        joined: Callable[[E, E], E | None],
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._lease = lease
        self._recent = recent
        self._joined = joined
        self._told: list[E] = []
        self._news = asyncio.Event()
        self._turn = asyncio.Lock()
        self._closed = False

    def tell(self, event: E) -> None:
        """Have an event recorded soon."""
        joined = self._joined(self._told[-1], event) if self._told else None
        if joined is None:
            self._told.append(event)
        else:
            self._told[-1] = joined
        self._news.set()

    async def commit(self, change: Change[E]) -> None:
        """Record a change, and before it what was told.

        Raises:
            LostLeaseError: somebody else works on the run, or nobody is to.
            UnavailableError: the database cannot be written now.
        """
        async with self._turn:
            if self._closed:
                return
            told, self._told = self._told, []
            self._news.clear()
            recorded = await self._store.record(
                self._run_id, self._lease(), replace(change, events=(*told, *change.events))
            )
            if change.state is not None:
                # The lease went with it: `keep` has nothing more to do.
                self._closed = True
                self._news.set()
                self._recent.forget()
            else:
                self._recent.add(recorded)

    async def keep(self) -> None:
        """Record what is told and renew the lease until the run ends or waits; raises as `commit` does."""
        while not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_RENEW_SECONDS):
                    await self._news.wait()
            await self.commit(Change())
            await asyncio.sleep(_PAUSE_SECONDS)
