"""What is asked about following a session, and what is told beside the events of its turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from peripety.sessions.watching.sights import Sight

__all__ = ["Closed", "Heartbeat", "Rewound", "SeatActed", "WatchEvent", "WatchRequest"]


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A session to follow.

    Attributes:
        session_id: the session.
        pov: the entity whose view this is; None for the public part.
        after: sequence of the last event that was received; 0 for all from the start.
        attempt_id: the attempt that it belonged to, when it is known.
        delay_turns: how many turns to stay behind.
    """

    session_id: str
    pov: str | None = None
    after: int = 0
    attempt_id: str | None = None
    delay_turns: int = 0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing happened for a while; `last_sequence` is that of the last event that was told."""

    last_sequence: int


@dataclass(frozen=True, slots=True)
class SeatActed:
    """A seat has handed in its actions for a turn, which still waits for others."""

    turn: int
    seat_id: str
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewound:
    """The turns after `turn` were taken back; `sequence` is that of this event."""

    turn: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The last event, why it is, and the sequence from where to follow again without a gap."""

    reason: str
    last_sequence: int


WatchEvent: TypeAlias = "Sight | Heartbeat | SeatActed | Rewound | Closed"
