"""Topic of a watched session: its state in this process, shared by all watchers."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.sessions.model import SeatOrder
from peripety.sessions.watching.model import Rewound
from peripety.sessions.watching.sights import RecordedTurn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from peripety.sessions.model import Session
    from peripety.sessions.watching.live import Live

__all__ = ["RECENT_TURNS", "Channel", "Entry", "Head", "entry_end"]

RECENT_TURNS = 32
"""Number of recent log entries in memory, and the maximum lag of a watcher."""

_PAGES = 32

Entry: TypeAlias = RecordedTurn | Rewound


@dataclass(frozen=True, slots=True)
class Head:
    """End of a session's log.

    Attributes:
        turn: number of committed turns.
        sequence: sequence of the last event.
        ongoing: True if the run has not ended.
    """

    turn: int
    sequence: int
    ongoing: bool

    @classmethod
    def of(cls, session: Session) -> Head:
        """Return the end of the log of a session."""
        return cls(session.turn, session.last_sequence, session.status.kind == "ongoing")


class Channel:
    """End of a session's log, its recent entries, and a notification of news.

    Args:
        session: the session as read when the first watcher joined.
        spec: its scenario.

    Attributes:
        session_id: the session.
        spec: its scenario.
        head: the known end of the log.
        deleted: True if the session was deleted.
        news: set and replaced when something happens.
        followers: number of watchers.
        seats: the seats that act at the same time, in playing order; empty otherwise.
        acted_after: sequence before the turn that `acted` refers to.
        acted: seats that have acted, in order.
        last_attempt: the last finished attempt, for watchers that have not received all of it.
    """

    def __init__(self, session: Session, spec: Mapping[str, Any]) -> None:
        self.session_id = session.session_id
        self.spec = spec
        self.head = Head.of(session)
        self.deleted = False
        self.news = asyncio.Event()
        self.followers = 0
        self.seats = _acting_together(session)
        self.acted_after = session.last_sequence
        self.acted: tuple[str, ...] = ()
        self.last_attempt: Live | None = None
        self._floor = session.last_sequence
        self._recent: list[Entry] = []
        self._pages: OrderedDict[int, Sequence[Entry]] = OrderedDict()
        self._used: set[int] = set()
        self._paging = asyncio.Lock()

    def pulse(self) -> None:
        """Wake all waiting watchers."""
        self.news.set()
        self.news = asyncio.Event()

    def hear_of_seats(self, after: int, acted: tuple[str, ...]) -> None:
        """Set the seats that have acted in the turn after a sequence."""
        if (after, acted) != (self.acted_after, self.acted) and after >= self.acted_after:
            self.acted_after, self.acted = after, acted
            self.pulse()

    def learn(self, head: Head, entries: Sequence[Entry]) -> None:
        """Add entries to the log.

        Args:
            head: the new end of the log.
            entries: all entries between the known end and the new one; known ones are skipped.
        """
        for entry in entries:
            if entry_end(entry) <= self.head.sequence:
                continue
            if isinstance(entry, Rewound):
                # They are no longer in the log, so watchers that have not received them must not wait for
                # them.
                self._recent = [one for one in self._recent if one.turn <= entry.turn]
                self._pages = OrderedDict()
            self._recent.append(entry)
        for gone in self._recent[:-RECENT_TURNS]:
            self._floor = entry_end(gone)
        del self._recent[:-RECENT_TURNS]
        if head.sequence > self.head.sequence:
            self.head, self.last_attempt = head, None
            self.pulse()

    def tidy(self) -> None:
        """Evict the pages that were not read since the last call."""
        for start in [start for start in self._pages if start not in self._used]:
            del self._pages[start]
        self._used.clear()

    async def after(self, sequence: int, load: Callable[[int], Awaitable[Sequence[Entry]]]) -> Entry | None:
        """Return the first entry that ends after a sequence, or None before the next news.

        Args:
            sequence: the position of the watcher.
            load: reads the next entries of the log after a sequence.
        """
        if sequence >= self._floor:
            return _first_after(self._recent, sequence)
        async with self._paging:
            for start, page in self._pages.items():
                if page and start <= sequence < entry_end(page[-1]):
                    self._used.add(start)
                    return _first_after(page, sequence)
            pages, page = self._pages, await load(sequence)
            if pages is not self._pages:
                # A rewind during the read: the page may contain turns that no longer exist.
                return None
            self._pages[sequence] = page
            self._used.add(sequence)
            if len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        return _first_after(page, sequence)


def entry_end(entry: Entry) -> int:
    """Return the last sequence of a log entry."""
    return entry.sequence if isinstance(entry, Rewound) else entry.last_sequence


def _first_after(entries: Sequence[Entry], sequence: int) -> Entry | None:
    index = bisect_right(entries, sequence, key=entry_end)
    return entries[index] if index < len(entries) else None


def _acting_together(session: Session) -> tuple[str, ...]:
    table = session.table
    if table is None or table.order is not SeatOrder.SIMULTANEOUS:
        return ()
    return tuple(seat.seat_id for seat in table.seats)
