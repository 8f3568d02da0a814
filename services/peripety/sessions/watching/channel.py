"""What this process knows of a session that is followed here, for all its followers."""

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
"""How many of the last entries of a log are kept at hand, and how far a follower may fall behind."""

_PAGES = 32

Entry: TypeAlias = RecordedTurn | Rewound


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a session's log.

    Attributes:
        turn: committed turns.
        sequence: that of the last event.
        ongoing: whether the run goes on.
    """

    turn: int
    sequence: int
    ongoing: bool

    @classmethod
    def of(cls, session: Session) -> Head:
        """Where a session is."""
        return cls(session.turn, session.last_sequence, session.status.kind == "ongoing")


class Channel:
    """The end of a session's log, its last entries, and a signal when there is something new.

    Args:
        session: the session as it was read when somebody began to follow it.
        spec: the scenario that it plays.

    Attributes:
        session_id: the session.
        spec: the scenario.
        head: the end of the log as far as it is known here.
        deleted: whether the session is gone.
        news: set, and replaced, when something happens.
        followers: how many follow.
        seats: those that act at the same time, in playing order; nothing when they do not.
        acted_after: the sequence that the turn follows in which `acted` have acted.
        acted: seats that have acted, in the order in which they did.
        last_attempt: the attempt that was over last here, for those who have not heard all of it.
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
        """Wake those who wait for news."""
        self.news.set()
        self.news = asyncio.Event()

    def hear_of_seats(self, after: int, acted: tuple[str, ...]) -> None:
        """Take note of the seats that have acted in the turn that follows a sequence."""
        if (after, acted) != (self.acted_after, self.acted) and after >= self.acted_after:
            self.acted_after, self.acted = after, acted
            self.pulse()

    def learn(self, head: Head, entries: Sequence[Entry]) -> None:
        """Take note of what was added to the log.

        Args:
            head: the end of the log now.
            entries: all between the end that was known and this one; what is known already is passed over.
        """
        for entry in entries:
            if entry_end(entry) <= self.head.sequence:
                continue
            if isinstance(entry, Rewound):
                # They are not in the log any more, and who has not heard of them must not wait for them.
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
        """Forget those parts of the log that nobody has read since the last time."""
        for start in [start for start in self._pages if start not in self._used]:
            del self._pages[start]
        self._used.clear()

    async def after(self, sequence: int, load: Callable[[int], Awaitable[Sequence[Entry]]]) -> Entry | None:
        """The first entry that ends after a sequence; None when there is none now, until there is news.

        Args:
            sequence: where to go on.
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
                # Some of it may have been taken back since it was read.
                return None
            self._pages[sequence] = page
            self._used.add(sequence)
            if len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        return _first_after(page, sequence)


def entry_end(entry: Entry) -> int:
    """The sequence with which an entry of the log ends."""
    return entry.sequence if isinstance(entry, Rewound) else entry.last_sequence


def _first_after(entries: Sequence[Entry], sequence: int) -> Entry | None:
    index = bisect_right(entries, sequence, key=entry_end)
    return entries[index] if index < len(entries) else None


def _acting_together(session: Session) -> tuple[str, ...]:
    table = session.table
    if table is None or table.order is not SeatOrder.SIMULTANEOUS:
        return ()
    return tuple(seat.seat_id for seat in table.seats)
