"""In-memory tail of the event log: local followers need not read recent events from the database."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.durable.model import Recorded

__all__ = ["Recent"]

_MOST = 512

E = TypeVar("E")


class Recent(Generic[E]):
    """The most recent events of a run that this process works on.

    Attributes:
        news: set when the log has grown or this process stops working on the run, and then replaced by a new
            event.
    """

    def __init__(self) -> None:
        self._events: deque[Recorded[E]] = deque(maxlen=_MOST)
        self.news = asyncio.Event()

    def add(self, events: Sequence[Recorded[E]]) -> None:
        """Append recorded events."""
        if events:
            self._events.extend(events)
            self.tell()

    def forget(self) -> None:
        """Clear the buffer, so that followers read the log, which may contain other events."""
        self._events.clear()
        self.tell()

    def tell(self) -> None:
        """Wake all followers."""
        self.news.set()
        self.news = asyncio.Event()

    def after(self, sequence: int) -> list[Recorded[E]] | None:
        """Return the events after a sequence, or None if they must be read from the log."""
        if not self._events or sequence < self._events[0].sequence - 1:
            return None
        return [event for event in self._events if event.sequence > sequence]
