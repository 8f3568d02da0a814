"""Followers of sessions, as tests use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from peripety.core.concurrency import closing
from peripety.session.events import Accepted, Committed
from peripety.session.watch.topic import CachedEventView, SessionRewound, WatchClosed, WatchRequest

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence

    from peripety.session.session_manager import SessionManager
    from peripety.session.visibility import TurnEventView
    from peripety.session.watch.topic import WatchEvent


T = TypeVar("T")


async def watch(
    sessions: SessionManager,
    session_id: str,
    until: Callable[[WatchEvent], bool],
    **request: Any,
) -> list[WatchEvent]:
    """Follow a session until an event, which is the last one returned, or until it is closed."""
    told = []
    async with closing(sessions.watch_streams.open(WatchRequest(session_id, **request))) as events:
        async for event in events:
            told.append(event)
            if until(event):
                break
    return told


def commits(turn: int) -> Callable[[WatchEvent], bool]:
    """Return a condition: the event reports that a turn is stored."""
    return lambda event: (
        isinstance(event, CachedEventView)
        and event.view.turn == turn
        and isinstance(event.view.event, Committed)
    )


def ends(event: WatchEvent) -> bool:
    """Return True if an event is the last one."""
    return isinstance(event, WatchClosed)


def noticing(there: asyncio.Event, until: Callable[[T], bool]) -> Callable[[T], bool]:
    """Return the same condition, which sets `there` at the first event: then the follower is connected."""

    def is_over(event: T) -> bool:
        there.set()
        return until(event)

    return is_over


def seen_of(events: Iterable[WatchEvent]) -> list[TurnEventView]:
    """The events of turns."""
    return [event.view for event in events if isinstance(event, CachedEventView)]


class Held:
    """The events of a session that a client holds by the contract: void events are dropped."""

    def __init__(self) -> None:
        self.events: list[TurnEventView] = []
        self.last_sequence = 0
        self.attempt_id: str | None = None

    def hear(self, events: Sequence[WatchEvent]) -> None:
        """Take events as they come; what should not come is an error."""
        for event in events:
            if isinstance(event, SessionRewound):
                self.events = [one for one in self.events if one.turn <= event.turn]
                self.last_sequence, self.attempt_id = event.sequence, None
            elif isinstance(event, CachedEventView):
                self._hear(event.view)

    def _hear(self, seen: TurnEventView) -> None:
        if isinstance(seen.event, Accepted):
            self.events = [one for one in self.events if one.turn < seen.turn]
            self.attempt_id = seen.event.attempt_id
        elif seen.sequence != self.last_sequence + 1:
            raise AssertionError(f"{seen.sequence} came after {self.last_sequence}")
        self.events.append(seen)
        self.last_sequence = seen.sequence
