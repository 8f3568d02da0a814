"""Seats and turn order of a session with several players, and the submissions of seats."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError, NotFoundError, field_error
from peripety.session.types import TurnOrder, request_digest_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.session.types import PlayerAction, Seat, SeatConfig, Session, TurnRequest


TURN_LEASE_MICROS = 120_000_000
"""Shortest lease on a turn that is being played."""

_LEASE_RESERVE_SECONDS = 30.0


def turn_lease(narrator_seconds: float) -> int:
    """Return the lease on a turn in progress, in microseconds: longer than its narration may take."""
    return max(TURN_LEASE_MICROS, round((narrator_seconds + _LEASE_RESERVE_SECONDS) * 1_000_000))


@dataclass(frozen=True, slots=True)
class SubmitActionsRequest:
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
    actions: tuple[PlayerAction, ...] = ()
    input: str = ""

    def request_digest(self) -> str:
        """Return a digest that distinguishes the request from another one with the same id."""
        return request_digest_of(asdict(self))


@dataclass(frozen=True, slots=True)
class SeatSubmission:
    """Stored submission of a seat for the next turn.

    Attributes:
        seat_id: the seat.
        actions: actions to try, in order.
        input: free text of the player.
        has_acted: True if the seat acted; False if it timed out.
    """

    seat_id: str
    actions: tuple[PlayerAction, ...]
    input: str
    has_acted: bool


@dataclass(frozen=True, slots=True)
class SimultaneousTurn:
    """The next turn, if all seats act at the same time.

    Attributes:
        session: the session before it.
        submissions: submissions so far, in order of arrival.
    """

    session: Session
    submissions: tuple[SeatSubmission, ...]

    @property
    def acted_seats(self) -> tuple[str, ...]:
        """The seats that have acted, in order of arrival."""
        return tuple(one.seat_id for one in self.submissions if one.has_acted)

    @property
    def waiting_seats(self) -> tuple[str, ...]:
        """The seats that the turn waits for, in playing order."""
        there = {one.seat_id for one in self.submissions}
        seats = () if self.session.table is None else self.session.table.seats
        return tuple(seat.seat_id for seat in seats if seat.seat_id not in there)


def seat_of_request(request: TurnRequest, session: Session) -> Seat | None:
    """Return the seat of a turn request; None if there is one player.

    Raises:
        InvalidArgumentError: it is missing, the session has no seats, or the view of another entity is
            requested.
        NotFoundError: the seat does not exist.
        FailedPreconditionError: `SIMULTANEOUS_SEATS`.
    """
    if session.table is None:
        if request.seat_id is not None:
            raise field_error(".seat_id", "must be empty: the session has one player")
        return None
    if session.table.order is TurnOrder.SIMULTANEOUS:
        raise FailedPreconditionError(
            "session has simultaneous seats; submit their actions with SubmitActions",
            code="SIMULTANEOUS_SEATS",
        )
    if request.seat_id is None:
        raise field_error(".seat_id", "is required: the session has several players")
    seat = find_seat(request.seat_id, session.table)
    if request.pov not in {None, seat.entity_id}:
        raise field_error(".pov_entity_id", f"must be empty, or '{seat.entity_id}', the entity of the seat")
    return seat


def find_seat(seat_id: str, table: SeatConfig) -> Seat:
    """Return the seat with an id.

    Raises:
        NotFoundError: the seat does not exist.
    """
    for seat in table.seats:
        if seat.seat_id == seat_id:
            return seat
    listed = ", ".join(seat.seat_id for seat in table.seats)
    raise NotFoundError(
        f"seat_id: the session has no seat '{seat_id[:64]}'; use one of {listed}",
        code="UNKNOWN_SEAT",
    )


def check_seat_turn(seat: Seat | None, session: Session) -> None:
    """Raise an error unless it is the turn of a seat.

    Raises:
        FailedPreconditionError: `NOT_YOUR_TURN`.
    """
    following = None if session.table is None else session.table.next_seat(session.turn)
    if seat is not None and following is not None and seat != following:
        raise FailedPreconditionError(
            f"seat_id: it is the turn of seat '{following.seat_id}', not of '{seat.seat_id}'; wait",
            code="NOT_YOUR_TURN",
            details={"next_seat_id": following.seat_id},
        )


def with_actor(seat: Seat | None, actions: Sequence[PlayerAction]) -> tuple[PlayerAction, ...]:
    """Return the actions with the entity of a seat as their actor."""
    if seat is None:
        return tuple(actions)
    return tuple(replace(action, entity_id=seat.entity_id) for action in actions)
