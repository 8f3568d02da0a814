"""Turns and their events as viewers see them, and how much of that a message holds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.sessions.events import Event
    from peripety.sessions.model import CommittedTurn, Session
    from peripety.sessions.visibility import SessionView

__all__ = ["Room", "Seen", "SeenTurn", "seen_events"]

# What is measured goes out inside of a reply, and as an item of a list.
_ENVELOPE_BYTES = 1024
_ITEM_BYTES = 16


@dataclass(frozen=True, slots=True)
class Seen:
    """An event as one viewer sees it.

    Attributes:
        session_id: the session.
        turn: the turn, from 1.
        sequence: its place among all recorded events of the session, from 1.
        event: what happened; None when the viewer may see nothing of it.
        spec: the scenario that it happened in.
    """

    session_id: str
    turn: int
    sequence: int
    event: Event | None
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """A turn, its events as one viewer sees them."""

    turn: CommittedTurn
    events: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """How large a turn may grow: what is committed must reach whoever asks for it.

    Attributes:
        limit: the most bytes of one message.
        size_of: the bytes of the largest message that a turn is sent in, event by event or in a list.
    """

    limit: int
    size_of: Callable[[SeenTurn], int]

    def holds(self, turn: SeenTurn) -> bool:
        """Whether the turn can be sent."""
        return self.size_of(turn) + _ENVELOPE_BYTES <= self.limit

    def fitting(self, items: Sequence[Sequence[SeenTurn]], taken: int = 0) -> int:
        """How many items, of a turn or two, can be sent together after `taken` bytes; one always can."""
        sizes = accumulate(sum(self.size_of(turn) + _ITEM_BYTES for turn in item) for item in items)
        return max(1, sum(taken + size + _ENVELOPE_BYTES <= self.limit for size in sizes))


def seen_events(
    session: Session, spec: Mapping[str, Any], view: SessionView, turn: CommittedTurn
) -> Iterator[Seen]:
    """The recorded events of a turn, as one viewer sees them."""
    for sequence, event in enumerate(turn.events, turn.first_sequence):
        yield Seen(session.session_id, turn.turn, sequence, view.event(event, turn.pov), spec)
