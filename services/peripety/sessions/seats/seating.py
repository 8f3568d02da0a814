"""Who sits at a table, and whose turn it is."""

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
    """The seat that a turn is asked for by; None when there is one player.

    Raises:
        InvalidArgumentError: it is missing, or there are no seats, or another entity's view is asked for.
        NotFoundError: there is no such seat.
        FailedPreconditionError: `SIMULTANEOUS_SEATS`.
    """
    if session.table is None:
        if request.seat_id is not None:
            raise refuse(".seat_id", "must be empty: the session has one player")
        return None
    if session.table.order is SeatOrder.SIMULTANEOUS:
        raise FailedPreconditionError(
            "The seats of this session act at the same time; hand the actions in with SubmitActions",
            code="SIMULTANEOUS_SEATS",
        )
    if request.seat_id is None:
        raise refuse(".seat_id", "is required: the session has several players")
    seat = seat_named(request.seat_id, session.table)
    if request.pov not in {None, seat.entity_id}:
        raise refuse(".pov_entity_id", f"must be empty, or '{seat.entity_id}', whom the seat plays")
    return seat


def seat_named(seat_id: str, table: Table) -> Seat:
    """A seat by its id.

    Raises:
        NotFoundError: there is none of that id.
    """
    for seat in table.seats:
        if seat.seat_id == seat_id:
            return seat
    listed = ", ".join(seat.seat_id for seat in table.seats)
    raise NotFoundError(
        f".seat_id: the session has no seat '{seat_id[:64]}'; use one of {listed}", code="UNKNOWN_SEAT"
    )


def check_turn_of(seat: Seat | None, session: Session) -> None:
    """Refuse a seat whose turn it is not.

    Raises:
        FailedPreconditionError: `NOT_YOUR_TURN`.
    """
    following = None if session.table is None else session.table.next_seat(session.turn)
    if seat is not None and following is not None and seat != following:
        raise FailedPreconditionError(
            f"It is the turn of seat '{following.seat_id}', not of '{seat.seat_id}'; wait for it",
            code="NOT_YOUR_TURN",
            details={"next_seat_id": following.seat_id},
        )


def acted_by(seat: Seat | None, actions: Sequence[ActionCall]) -> tuple[ActionCall, ...]:
    """Actions as those of the entity that a seat plays."""
    if seat is None:
        return tuple(actions)
    return tuple(replace(action, entity_id=seat.entity_id) for action in actions)
