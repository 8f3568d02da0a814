"""Event log of a durable run: a writer for its worker, and a tail in memory for local followers.

The writer appends events while they happen, and renews the lease of the worker. Followers in the same
process need not read recent events from the database.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from peripety.core.concurrency import wait_for_event
from peripety.core.runs.types import RunUpdate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.core.runs.store import RunStore
    from peripety.core.runs.types import Lease, RecordedEvent


_MAX_EVENTS = 512

E = TypeVar("E")


class RunEventBuffer(Generic[E]):
    """The most recent events of a run that this process works on.

    Attributes:
        news: set when the log has grown or this process stops working on the run, and then replaced by a new
            event.
    """

    def __init__(self) -> None:
        self._events: deque[RecordedEvent[E]] = deque(maxlen=_MAX_EVENTS)
        self.news = asyncio.Event()

    def append(self, events: Sequence[RecordedEvent[E]]) -> None:
        """Append recorded events."""
        if events:
            self._events.extend(events)
            self.notify()

    def clear(self) -> None:
        """Clear the buffer, so that followers read the log, which may contain other events."""
        self._events.clear()
        self.notify()

    def notify(self) -> None:
        """Wake all followers."""
        self.news.set()
        self.news = asyncio.Event()

    def since(self, sequence: int) -> list[RecordedEvent[E]] | None:
        """Return the events after a sequence, or None if they must be read from the log."""
        if not self._events or sequence < self._events[0].sequence - 1:
            return None
        return [event for event in self._events if event.sequence > sequence]


_RENEW_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


def no_coalescing(_before: Any, _after: Any) -> None:
    """Never merge two events."""


class RunEventWriter(Generic[E]):
    """Writer of the event log of one run until the run ends or waits.

    Small events are buffered and written together, at most about twenty times a second, and neighbours are
    merged where possible. Important changes are written at once, after all buffered events.

    Args:
        store: stores the log.
        run_id: id of the run.
        lease: returns a lease with a later expiry.
        buffer: receives the recorded events.
        coalesce: merges two neighbouring events, or returns None to leave them separate.
    """

    def __init__(
        self,
        store: RunStore[Any, E],
        run_id: str,
        lease: Callable[[], Lease],
        buffer: RunEventBuffer[E],
        coalesce: Callable[[E, E], E | None],
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._lease = lease
        self._buffer = buffer
        self._coalesce = coalesce
        self._pending: list[E] = []
        self._news = asyncio.Event()
        self._write_lock = asyncio.Lock()
        self._closed = False

    def append(self, event: E) -> None:
        """Buffer an event to be written soon."""
        joined = self._coalesce(self._pending[-1], event) if self._pending else None
        if joined is None:
            self._pending.append(event)
        else:
            self._pending[-1] = joined
        self._news.set()

    async def commit(self, change: RunUpdate[E]) -> None:
        """Write the buffered events, then a change.

        Raises:
            LostLeaseError: another worker has the run, or the run has no more work to do.
            UnavailableError: the database cannot be written now.
        """
        async with self._write_lock:
            if self._closed:
                return
            told, self._pending = self._pending, []
            self._news.clear()
            recorded = await self._store.append_events(
                self._run_id,
                self._lease(),
                replace(change, events=(*told, *change.events)),
            )
            if change.state is not None:
                # The lease was released with the state: `keep` has nothing more to do.
                self._closed = True
                self._news.set()
                self._buffer.clear()
            else:
                self._buffer.append(recorded)

    async def renew_lease(self) -> None:
        """Write buffered events and renew the lease until the run ends or waits.

        Raises:
            LostLeaseError: see `commit`.
            UnavailableError: see `commit`.
        """
        while not self._closed:
            await wait_for_event(self._news, _RENEW_SECONDS)
            await self.commit(RunUpdate())
            await asyncio.sleep(_PAUSE_SECONDS)
