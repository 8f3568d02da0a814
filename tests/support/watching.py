"""Followers of sessions, as tests use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from peripety.gateway.streams import following
from peripety.sessions.events import Accepted, Committed
from peripety.sessions.watching.model import Closed, Rewound, WatchRequest
from peripety.sessions.watching.sights import Sight

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence

    from peripety.sessions.seen import Seen
    from peripety.sessions.sessions import Sessions
    from peripety.sessions.watching.model import WatchEvent

__all__ = ["Held", "commits", "ends", "noticing", "seen_of", "watch"]

T = TypeVar("T")


async def watch(
    sessions: Sessions, session_id: str, until: Callable[[WatchEvent], bool], **request: Any
) -> list[WatchEvent]:
    """Follow a session until an event, which is the last one returned, or until it is closed."""
    told = []
    async with following(sessions.watch(WatchRequest(session_id, **request))) as events:
        async for event in events:
            told.append(event)
            if until(event):
                break
    return told


def commits(turn: int) -> Callable[[WatchEvent], bool]:
    """Whether an event says that a turn is stored."""
    return lambda event: (
        isinstance(event, Sight) and event.seen.turn == turn and isinstance(event.seen.event, Committed)
    )


def ends(event: WatchEvent) -> bool:
    """Whether an event is the last one."""
    return isinstance(event, Closed)


def noticing(there: asyncio.Event, until: Callable[[T], bool]) -> Callable[[T], bool]:
    """The same condition, which sets `there` when a first event is told: only then somebody follows."""

    def is_over(event: T) -> bool:
        there.set()
        return until(event)

    return is_over


def seen_of(events: Iterable[WatchEvent]) -> list[Seen]:
    """The events of turns."""
    return [event.seen for event in events if isinstance(event, Sight)]


class Held:
    """What a client holds of a session, as the contract tells it to: void events are dropped."""

    def __init__(self) -> None:
        self.events: list[Seen] = []
        self.last_sequence = 0
        self.attempt_id: str | None = None

    def hear(self, events: Sequence[WatchEvent]) -> None:
        """Take events as they come; what should not come is an error."""
        for event in events:
            if isinstance(event, Rewound):
                self.events = [one for one in self.events if one.turn <= event.turn]
                self.last_sequence, self.attempt_id = event.sequence, None
            elif isinstance(event, Sight):
                self._hear(event.seen)

    def _hear(self, seen: Seen) -> None:
        if isinstance(seen.event, Accepted):
            self.events = [one for one in self.events if one.turn < seen.turn]
            self.attempt_id = seen.event.attempt_id
        elif seen.sequence != self.last_sequence + 1:
            raise AssertionError(f"{seen.sequence} came after {self.last_sequence}")
        self.events.append(seen)
        self.last_sequence = seen.sequence
