"""What seats hand in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from peripety.sessions.model import digest_of

if TYPE_CHECKING:
    from peripety.sessions.model import ActionCall, Session

__all__ = ["LEASE_MICROSECONDS", "HandedIn", "Round", "Submission"]

LEASE_MICROSECONDS = 120_000_000
"""How long a turn that is being played is put off: longer than a narrator is given."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What a seat hands in where all act at the same time.

    Attributes:
        session_id: the session.
        request_id: names the request; the same one again changes nothing.
        expected_turn: the number of the turn that it is meant for.
        seat_id: the seat.
        actions: what it tries, in order; empty to pass.
        input: what it says, as free text.
    """

    session_id: str
    request_id: str
    expected_turn: int
    seat_id: str
    actions: tuple[ActionCall, ...] = ()
    input: str = ""

    def digest(self) -> str:
        """Tells this request from another one under the same id."""
        return digest_of(asdict(self))


@dataclass(frozen=True, slots=True)
class HandedIn:
    """What a seat does in the turn that comes next.

    Attributes:
        seat_id: the seat.
        actions: what it tries, in order.
        input: what it says.
        in_time: whether it acted; otherwise its time was up.
    """

    seat_id: str
    actions: tuple[ActionCall, ...]
    input: str
    in_time: bool


@dataclass(frozen=True, slots=True)
class Round:
    """The turn that comes next, where all seats act at the same time.

    Attributes:
        session: the session before it.
        handed_in: what is there already, in the order in which it came.
    """

    session: Session
    handed_in: tuple[HandedIn, ...]

    @property
    def acted(self) -> tuple[str, ...]:
        """The seats that acted, in that order."""
        return tuple(one.seat_id for one in self.handed_in if one.in_time)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The seats that the turn waits for, in playing order."""
        there = {one.seat_id for one in self.handed_in}
        seats = () if self.session.table is None else self.session.table.seats
        return tuple(seat.seat_id for seat in seats if seat.seat_id not in there)
