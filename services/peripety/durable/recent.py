"""The last events of a run that this process has recorded: who follows it here need not read them again."""

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
    """The end of the log of a run that this process works on.

    Attributes:
        news: is set when the log has grown, or this process stops to work on the run; then comes a new one.
    """

    def __init__(self) -> None:
        self._events: deque[Recorded[E]] = deque(maxlen=_MOST)
        self.news = asyncio.Event()

    def add(self, events: Sequence[Recorded[E]]) -> None:
        """Remember what was recorded."""
        if events:
            self._events.extend(events)
            self.tell()

    def forget(self) -> None:
        """Leave what was recorded to the log: it may say it in another way."""
        self._events.clear()
        self.tell()

    def tell(self) -> None:
        """Have followers look again."""
        self.news.set()
        self.news = asyncio.Event()

    def after(self, sequence: int) -> list[Recorded[E]] | None:
        """The events after a sequence; None when only the log knows."""
        if not self._events or sequence < self._events[0].sequence - 1:
            return None
        return [event for event in self._events if event.sequence > sequence]
