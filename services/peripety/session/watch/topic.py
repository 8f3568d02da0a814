"""Topic of a watched session: recent events, the turn in progress, and projections, shared by all watchers.

Projections of turn events are computed once per view. A hundred watchers of one view cost one projection
and one encoding; each further watcher only costs sending the bytes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.session.events import Accepted
from peripety.session.types import TurnOrder
from peripety.session.visibility import TurnEventView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from peripety.session.events import Event
    from peripety.session.types import CommittedTurn, Session
    from peripety.session.visibility import ViewerProjection


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Request to watch a session.

    Attributes:
        session_id: the session.
        pov: the entity whose view this is; None for the public view.
        after: sequence of the last received event; 0 for all events.
        attempt_id: the attempt of that event, if known.
        delay_turns: number of turns to stay behind.
    """

    session_id: str
    pov: str | None = None
    after: int = 0
    attempt_id: str | None = None
    delay_turns: int = 0


@dataclass(frozen=True, slots=True)
class WatchHeartbeat:
    """Sign of life without news; `last_sequence` is that of the last event sent."""

    last_sequence: int


@dataclass(frozen=True, slots=True)
class SeatActed:
    """A seat has submitted its actions for a turn that still waits for others."""

    turn: int
    seat_id: str
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionRewound:
    """The turns after `turn` were undone; `sequence` is that of this event."""

    turn: int
    sequence: int


@dataclass(frozen=True, slots=True)
class WatchClosed:
    """Last event of a stream: its reason, and the sequence from which to watch again without a gap."""

    reason: str
    last_sequence: int


WatchEvent: TypeAlias = "CachedEventView | WatchHeartbeat | SeatActed | SessionRewound | WatchClosed"


class CachedEventView:
    """An event as seen from one point of view, with its encoding.

    Attributes:
        view: the projected event.
    """

    __slots__ = ("_encoded", "view")

    def __init__(self, seen: TurnEventView) -> None:
        self.view = seen
        self._encoded: bytes | None = None

    def encode_once(self, encode: Callable[[TurnEventView], bytes]) -> bytes:
        """Return the encoded event, cached; `encode` must always be the same function."""
        if self._encoded is None:
            self._encoded = encode(self.view)
        return self._encoded


class SharedEvent:
    """A complete event of a turn, with its projections.

    Args:
        session_id: the session.
        turn: the turn.
        sequence: its position among all events of the session.
        event: the event.
        audience: the entity the turn is narrated for; None for everyone.
        spec: the scenario.
    """

    __slots__ = ("_audience", "_spec", "_views", "event", "sequence", "session_id", "turn")

    def __init__(
        self,
        session_id: str,
        turn: int,
        sequence: int,
        event: Event,
        audience: str | None,
        spec: Mapping[str, Any],
    ) -> None:
        self.session_id = session_id
        self.turn = turn
        self.sequence = sequence
        self.event = event
        self._audience = audience
        self._spec = spec
        self._views: dict[str | None, CachedEventView] = {}

    def view_for(self, view: ViewerProjection) -> CachedEventView:
        """Return the projection of the event for a view."""
        sight = self._views.get(view.viewer)
        if sight is None:
            event = view.project_event(self.event, self._audience)
            sight = CachedEventView(
                TurnEventView(self.session_id, self.turn, self.sequence, event, self._spec),
            )
            self._views[view.viewer] = sight
        return sight


class LoggedTurn:
    """A committed turn with its events.

    Args:
        turn: number of the turn.
        events: all its events, in order.

    Attributes:
        attempt_id: the attempt that was committed.
    """

    __slots__ = ("attempt_id", "events", "turn")

    def __init__(self, turn: int, events: Sequence[SharedEvent]) -> None:
        self.turn = turn
        self.events = tuple(events)
        first = self.events[0].event
        self.attempt_id = first.attempt_id if isinstance(first, Accepted) else None

    @classmethod
    def from_committed(cls, session_id: str, spec: Mapping[str, Any], turn: CommittedTurn) -> LoggedTurn:
        """Convert a turn read from the log."""
        numbered = enumerate(turn.events, turn.first_sequence)
        return cls(
            turn.turn,
            [
                SharedEvent(session_id, turn.turn, sequence, event, turn.pov, spec)
                for sequence, event in numbered
            ],
        )

    @property
    def first_sequence(self) -> int:
        """Sequence of its first event."""
        return self.events[0].sequence

    @property
    def last_sequence(self) -> int:
        """Sequence of its last event."""
        return self.events[-1].sequence


MAX_LAG_TURNS = 32
"""Number of recent log entries in memory, and the maximum lag of a watcher."""

_MAX_PAGES = 32

LogEntry: TypeAlias = LoggedTurn | SessionRewound


@dataclass(frozen=True, slots=True)
class LogHead:
    """End of a session's log.

    Attributes:
        turn: number of committed turns.
        sequence: sequence of the last event.
        is_ongoing: True if the run has not ended.
    """

    turn: int
    sequence: int
    is_ongoing: bool

    @classmethod
    def from_session(cls, session: Session) -> LogHead:
        """Return the end of the log of a session."""
        return cls(session.turn, session.last_sequence, session.status.kind == "ongoing")


class SessionTopic:
    """End of a session's log, its recent entries, and a notification of news.

    Args:
        session: the session as read when the first watcher joined.
        spec: its scenario.

    Attributes:
        session_id: the session.
        spec: its scenario.
        head: the known end of the log.
        is_deleted: True if the session was deleted.
        news: set and replaced when something happens.
        watchers: number of watchers.
        seats: the seats that act at the same time, in playing order; empty otherwise.
        acted_after: sequence before the turn that `acted_seats` refers to.
        acted_seats: seats that have acted, in order.
        last_attempt: the last finished attempt, for watchers that have not received all of it.
    """

    def __init__(self, session: Session, spec: Mapping[str, Any]) -> None:
        self.session_id = session.session_id
        self.spec = spec
        self.head = LogHead.from_session(session)
        self.is_deleted = False
        self.news = asyncio.Event()
        self.watchers = 0
        self.seats = _simultaneous_seats(session)
        self.acted_after = session.last_sequence
        self.acted_seats: tuple[str, ...] = ()
        self.last_attempt: LiveTurn | None = None
        self._floor = session.last_sequence
        self._recent: list[LogEntry] = []
        self._pages: OrderedDict[int, Sequence[LogEntry]] = OrderedDict()
        self._used: set[int] = set()
        self._paging = asyncio.Lock()

    def notify(self) -> None:
        """Wake all waiting watchers."""
        self.news.set()
        self.news = asyncio.Event()

    def set_seats(self, after: int, acted: tuple[str, ...]) -> None:
        """Set the seats that have acted in the turn after a sequence."""
        if (after, acted) != (self.acted_after, self.acted_seats) and after >= self.acted_after:
            self.acted_after, self.acted_seats = after, acted
            self.notify()

    def update(self, head: LogHead, entries: Sequence[LogEntry]) -> None:
        """Add entries to the log.

        Args:
            head: the new end of the log.
            entries: all entries between the known end and the new one; known ones are skipped.
        """
        for entry in entries:
            if last_sequence_of(entry) <= self.head.sequence:
                continue
            if isinstance(entry, SessionRewound):
                # They are no longer in the log, so watchers that have not received them must not wait for
                # them.
                self._recent = [one for one in self._recent if one.turn <= entry.turn]
                self._pages = OrderedDict()
            self._recent.append(entry)
        for gone in self._recent[:-MAX_LAG_TURNS]:
            self._floor = last_sequence_of(gone)
        del self._recent[:-MAX_LAG_TURNS]
        if head.sequence > self.head.sequence:
            self.head, self.last_attempt = head, None
            self.notify()

    def compact(self) -> None:
        """Evict the pages that were not read since the last call."""
        for start in [start for start in self._pages if start not in self._used]:
            del self._pages[start]
        self._used.clear()

    async def next_entry(
        self,
        sequence: int,
        load: Callable[[int], Awaitable[Sequence[LogEntry]]],
    ) -> LogEntry | None:
        """Return the first entry that ends after a sequence, or None before the next news.

        Args:
            sequence: the position of the watcher.
            load: reads the next entries of the log after a sequence.
        """
        if sequence >= self._floor:
            return _find_entry_after(self._recent, sequence)
        async with self._paging:
            for start, page in self._pages.items():
                if page and start <= sequence < last_sequence_of(page[-1]):
                    self._used.add(start)
                    return _find_entry_after(page, sequence)
            pages, page = self._pages, await load(sequence)
            if pages is not self._pages:
                # A rewind during the read: the page may contain turns that no longer exist.
                return None
            self._pages[sequence] = page
            self._used.add(sequence)
            if len(self._pages) > _MAX_PAGES:
                self._pages.popitem(last=False)
        return _find_entry_after(page, sequence)


def last_sequence_of(entry: LogEntry) -> int:
    """Return the last sequence of a log entry."""
    return entry.sequence if isinstance(entry, SessionRewound) else entry.last_sequence


def _find_entry_after(entries: Sequence[LogEntry], sequence: int) -> LogEntry | None:
    index = bisect_right(entries, sequence, key=last_sequence_of)
    return entries[index] if index < len(entries) else None


def _simultaneous_seats(session: Session) -> tuple[str, ...]:
    table = session.table
    if table is None or table.order is not TurnOrder.SIMULTANEOUS:
        return ()
    return tuple(seat.seat_id for seat in table.seats)


class LiveTurn:
    """Events of an attempt to play the next turn of a session; none of them is committed yet.

    Args:
        session: the session before the turn.
        audience: the entity it is narrated for; None for everyone.
        spec: the scenario.

    Attributes:
        session_id: the session.
        turn: the turn.
        after: sequence of the last recorded event before the attempt.
        attempt_id: id of the attempt; None before its first event.
        events: events so far.
        on_event: called after each event.
    """

    def __init__(self, session: Session, audience: str | None, spec: Mapping[str, Any]) -> None:
        self.session_id = session.session_id
        self.turn = session.turn + 1
        self.after = session.last_sequence
        self.attempt_id: str | None = None
        self.events: list[SharedEvent] = []
        self._audience = audience
        self._spec = spec
        self.on_event: Callable[[], None] | None = None

    def publish(self, event: Event) -> None:
        """Publish an event to watchers; `Accepted` voids the previous ones."""
        if isinstance(event, Accepted):
            self.attempt_id = event.attempt_id
            # A new list, so that a watcher that iterates over the old one notices the restart.
            self.events = []
        self.events.append(self.make_event(event))
        if self.on_event is not None:
            self.on_event()

    def make_event(self, event: Event) -> SharedEvent:
        """Return an event with the next sequence of the attempt."""
        sequence = self.after + len(self.events) + 1
        return SharedEvent(self.session_id, self.turn, sequence, event, self._audience, self._spec)
