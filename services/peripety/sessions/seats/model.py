"""Submissions of seats."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from peripety.sessions.model import digest_of

if TYPE_CHECKING:
    from peripety.sessions.model import ActionCall, Session

__all__ = ["LEASE_MICROSECONDS", "HandedIn", "Round", "Submission"]

LEASE_MICROSECONDS = 120_000_000
"""Lease on a turn that is being played, longer than the narrator's time limit."""


@dataclass(frozen=True, slots=True)
class Submission:
    """Request to submit the actions of a seat, if all seats act at the same time.

    Attributes:
        session_id: the session.
        request_id: idempotency key; repeating it changes nothing.
        expected_turn: expected number of the turn (optimistic locking).
        seat_id: the seat.
        actions: actions to try, in order; empty to pass.
        input: free text of the player.
    """

    session_id: str
    request_id: str
    expected_turn: int
    seat_id: str
    actions: tuple[ActionCall, ...] = ()
    input: str = ""

    def digest(self) -> str:
        """Return a digest that distinguishes the request from another one with the same id."""
        return digest_of(asdict(self))


@dataclass(frozen=True, slots=True)
class HandedIn:
    """Stored submission of a seat for the next turn.

    Attributes:
        seat_id: the seat.
        actions: actions to try, in order.
        input: free text of the player.
        in_time: True if the seat acted; False if it timed out.
    """

    seat_id: str
    actions: tuple[ActionCall, ...]
    input: str
    in_time: bool


@dataclass(frozen=True, slots=True)
class Round:
    """The next turn, if all seats act at the same time.

    Attributes:
        session: the session before it.
        handed_in: submissions so far, in order of arrival.
    """

    session: Session
    handed_in: tuple[HandedIn, ...]

    @property
    def acted(self) -> tuple[str, ...]:
        """The seats that have acted, in order of arrival."""
        return tuple(one.seat_id for one in self.handed_in if one.in_time)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The seats that the turn waits for, in playing order."""
        there = {one.seat_id for one in self.handed_in}
        seats = () if self.session.table is None else self.session.table.seats
        return tuple(seat.seat_id for seat in seats if seat.seat_id not in there)
