"""Seats and turn order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError, NotFoundError
from peripety.requests import refuse
from peripety.sessions.model import SeatOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.sessions.model import ActionCall, Seat, Session, Table, TurnRequest

__all__ = ["acted_by", "check_turn_of", "seat_named", "seat_of"]


def seat_of(request: TurnRequest, session: Session) -> Seat | None:
    """Return the seat of a turn request; None if there is one player.

    Raises:
        InvalidArgumentError: it is missing, the session has no seats, or the view of another entity is
            requested.
        NotFoundError: the seat does not exist.
        FailedPreconditionError: `SIMULTANEOUS_SEATS`.
    """
    if session.table is None:
        if request.seat_id is not None:
            raise refuse(".seat_id", "must be empty: the session has one player")
        return None
    if session.table.order is SeatOrder.SIMULTANEOUS:
        raise FailedPreconditionError(
            "session has simultaneous seats; submit their actions with SubmitActions",
            code="SIMULTANEOUS_SEATS",
        )
    if request.seat_id is None:
        raise refuse(".seat_id", "is required: the session has several players")
    seat = seat_named(request.seat_id, session.table)
    if request.pov not in {None, seat.entity_id}:
        raise refuse(".pov_entity_id", f"must be empty, or '{seat.entity_id}', the entity of the seat")
    return seat


def seat_named(seat_id: str, table: Table) -> Seat:
    """Return the seat with an id.

    Raises:
        NotFoundError: the seat does not exist.
    """
    for seat in table.seats:
        if seat.seat_id == seat_id:
            return seat
    listed = ", ".join(seat.seat_id for seat in table.seats)
    raise NotFoundError(
        f".seat_id: the session has no seat '{seat_id[:64]}'; use one of {listed}", code="UNKNOWN_SEAT"
    )


def check_turn_of(seat: Seat | None, session: Session) -> None:
    """Raise an error unless it is the turn of a seat.

    Raises:
        FailedPreconditionError: `NOT_YOUR_TURN`.
    """
    following = None if session.table is None else session.table.next_seat(session.turn)
    if seat is not None and following is not None and seat != following:
        raise FailedPreconditionError(
            f".seat_id: it is the turn of seat '{following.seat_id}', not of '{seat.seat_id}'; wait",
            code="NOT_YOUR_TURN",
            details={"next_seat_id": following.seat_id},
        )


def acted_by(seat: Seat | None, actions: Sequence[ActionCall]) -> tuple[ActionCall, ...]:
    """Return the actions with the entity of a seat as their actor."""
    if seat is None:
        return tuple(actions)
    return tuple(replace(action, entity_id=seat.entity_id) for action in actions)
