"""Requests of the contract, as what the domain is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import UnsupportedError
from peripety.sessions.messages.parts import action_call
from peripety.sessions.model import NewSession, TurnRequest

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from peripety.api.session.v1 import session_pb2 as pb

__all__ = ["new_session", "turn_request"]


def new_session(request: pb.CreateSessionRequest) -> NewSession:
    """The session that a request wants."""
    _refuse_later_fields(request, "table", "narrator")
    return NewSession(
        request_id=request.request_id,
        scenario_id=request.scenario_id,
        spec_hash=request.spec_hash or None,
        seed=request.seed if request.HasField("seed") else None,
        pov=request.pov_entity_id or None,
    )


def turn_request(request: pb.TakeTurnRequest) -> TurnRequest:
    """The turn that a request wants."""
    _refuse_later_fields(request, "seat_id")
    return TurnRequest(
        session_id=request.session_id,
        request_id=request.request_id,
        expected_turn=request.expected_turn,
        actions=tuple(action_call(index, call) for index, call in enumerate(request.actions)),
        input=request.input,
        pov=request.pov_entity_id or None,
    )


def _refuse_later_fields(request: Message, *names: str) -> None:
    """Refuse what this version would have to ignore: an ignored seat or budget is worse than none."""
    asked = [f".{field.name}" for field, _ in request.ListFields() if field.name in names]
    if asked:
        raise UnsupportedError(
            f"This server does not support {', '.join(asked)} yet; leave it out", code="FIELD_UNSUPPORTED"
        )
