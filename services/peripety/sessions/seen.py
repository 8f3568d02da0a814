"""Turns and events as seen by a viewer, and the message size limit."""

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

# Overhead of the enclosing response, and of an item of a list.
_ENVELOPE_BYTES = 1024
_ITEM_BYTES = 16


@dataclass(frozen=True, slots=True)
class Seen:
    """An event as seen by one viewer.

    Attributes:
        session_id: the session.
        turn: the turn, from 1.
        sequence: its position among all recorded events of the session, from 1.
        event: the visible part of the event; None if nothing is visible.
        spec: the scenario.
    """

    session_id: str
    turn: int
    sequence: int
    event: Event | None
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """A turn with its events as seen by one viewer."""

    turn: CommittedTurn
    events: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """Size limit of turns: every committed turn must fit into a message.

    Attributes:
        limit: maximum size of a message in bytes.
        size_of: returns the size of the largest message with a turn or one of its events.
    """

    limit: int
    size_of: Callable[[SeenTurn], int]

    def holds(self, turn: SeenTurn) -> bool:
        """Return True if the turn can be sent."""
        return self.size_of(turn) + _ENVELOPE_BYTES <= self.limit

    def fitting(self, items: Sequence[Sequence[SeenTurn]], taken: int = 0) -> int:
        """Return how many items of one or two turns fit into a message after `taken` bytes; at least 1."""
        sizes = accumulate(sum(self.size_of(turn) + _ITEM_BYTES for turn in item) for item in items)
        return max(1, sum(taken + size + _ENVELOPE_BYTES <= self.limit for size in sizes))


def seen_events(
    session: Session, spec: Mapping[str, Any], view: SessionView, turn: CommittedTurn
) -> Iterator[Seen]:
    """Yield the recorded events of a turn as seen by one viewer."""
    for sequence, event in enumerate(turn.events, turn.first_sequence):
        yield Seen(session.session_id, turn.turn, sequence, view.event(event, turn.pov), spec)
