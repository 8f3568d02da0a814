"""Conversion of seats and submissions to and from messages."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from peripety.api.session.v1 import session_pb2 as pb
from peripety.requests import refuse
from peripety.sessions.messages.parts import action_call
from peripety.sessions.model import Seat, SeatOrder, Table
from peripety.sessions.seats.model import Submission

__all__ = ["submission", "table_from_proto", "table_to_proto"]

_ORDERS = {
    pb.SEAT_ORDER_UNSPECIFIED: SeatOrder.ROTATING,
    pb.SEAT_ORDER_ROTATING: SeatOrder.ROTATING,
    pb.SEAT_ORDER_SIMULTANEOUS: SeatOrder.SIMULTANEOUS,
}


def table_from_proto(table: pb.SeatConfig) -> Table:
    """Convert the seat configuration of a request.

    Raises:
        InvalidArgumentError: the seat order is unknown.
    """
    if table.order not in _ORDERS:
        raise refuse(".seat_config.order", "is not a known SeatOrder")
    timeout = table.seat_timeout
    return Table(
        tuple(Seat(seat.seat_id, seat.entity_id) for seat in table.seats),
        _ORDERS[table.order],
        timeout.seconds + timeout.nanos / 1e9 if table.HasField("seat_timeout") else None,
    )


def table_to_proto(table: Table) -> pb.SeatConfig:
    """Convert a seat configuration to a message."""
    timeout = None
    if table.seconds is not None:
        timeout = Duration()
        timeout.FromMicroseconds(round(table.seconds * 1_000_000))
    return pb.SeatConfig(
        seats=[pb.Seat(seat_id=seat.seat_id, entity_id=seat.entity_id) for seat in table.seats],
        order=pb.SeatOrder.Value(f"SEAT_ORDER_{table.order.name}"),
        seat_timeout=timeout,
    )


def submission(request: pb.SubmitActionsRequest) -> Submission:
    """Convert a request to submit the actions of a seat."""
    return Submission(
        session_id=request.session_id,
        request_id=request.request_id,
        expected_turn=request.expected_turn,
        seat_id=request.seat_id,
        actions=tuple(action_call(index, call) for index, call in enumerate(request.actions)),
        input=request.input,
    )
