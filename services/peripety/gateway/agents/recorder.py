"""Records what happens in a run while it happens, and keeps the lease of whoever works on it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.agents.changes import Change
from peripety.gateway.model import ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.gateway.agents.changes import Lease
    from peripety.gateway.agents.model import RunEvent
    from peripety.gateway.agents.store import RunStore

__all__ = ["Recorder"]

_RENEW_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


class Recorder:
    """The log of one run, as it is written until the run ends or waits.

    Pieces of an answer are recorded together, some twenty times a second at most, and neighbouring pieces as
    one; what matters is recorded at once, behind all that was told before it.

    Args:
        store: keeps the log.
        run_id: the run.
        lease: gives a lease that ends later than the one before.
        recorded: is called after each record.
    """

    def __init__(
        self, store: RunStore, run_id: str, lease: Callable[[], Lease], recorded: Callable[[], None]
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._lease = lease
        self._recorded = recorded
        self._told: list[RunEvent] = []
        self._news = asyncio.Event()
        self._turn = asyncio.Lock()
        self._closed = False

    def tell(self, event: RunEvent) -> None:
        """Have an event recorded soon."""
        joined = _joined(self._told[-1], event) if self._told else None
        if joined is None:
            self._told.append(event)
        else:
            self._told[-1] = joined
        self._news.set()

    async def commit(self, change: Change) -> None:
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
            await self._store.record(
                self._run_id, self._lease(), replace(change, events=(*told, *change.events))
            )
            if change.state is not None:
                # The lease went with it: `keep` has nothing more to do.
                self._closed = True
                self._news.set()
        self._recorded()

    async def keep(self) -> None:
        """Record what is told and renew the lease until the run ends or waits; raises as `commit` does."""
        while not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_RENEW_SECONDS):
                    await self._news.wait()
            await self.commit(Change())
            await asyncio.sleep(_PAUSE_SECONDS)


def _joined(before: RunEvent, after: RunEvent) -> RunEvent | None:
    """Two pieces of the same text as one; None when they are none."""
    match before, after:
        case (TextDelta(), TextDelta()):
            return TextDelta(before.text + after.text)
        case (ReasoningDelta(), ReasoningDelta()):
            return ReasoningDelta(before.text + after.text)
        case (ToolCallDelta(), ToolCallDelta()) if before.call_id == after.call_id:
            return replace(before, arguments_text=before.arguments_text + after.arguments_text)
    return None
