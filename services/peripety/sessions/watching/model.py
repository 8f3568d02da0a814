"""Watch requests, and watch events other than those of turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from peripety.sessions.watching.sights import Sight

__all__ = ["Closed", "Heartbeat", "Rewound", "SeatActed", "WatchEvent", "WatchRequest"]


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
class Heartbeat:
    """Sign of life without news; `last_sequence` is that of the last event sent."""

    last_sequence: int


@dataclass(frozen=True, slots=True)
class SeatActed:
    """A seat has submitted its actions for a turn that still waits for others."""

    turn: int
    seat_id: str
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewound:
    """The turns after `turn` were undone; `sequence` is that of this event."""

    turn: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Closed:
    """Last event of a stream: its reason, and the sequence from which to watch again without a gap."""

    reason: str
    last_sequence: int


WatchEvent: TypeAlias = "Sight | Heartbeat | SeatActed | Rewound | Closed"
