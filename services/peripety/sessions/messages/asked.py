"""Conversion of request messages to domain requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.messages.requests import budget_from_proto
from peripety.requests import refuse
from peripety.scenarios.messages.parts import PERSONAS
from peripety.sessions.branches.model import Comparison, Fork, Rewinding
from peripety.sessions.messages.parts import action_call
from peripety.sessions.messages.tables import table_from_proto
from peripety.sessions.model import NarratorOptions, NewSession, OddsRequest, TurnRequest
from peripety.sessions.watching.model import WatchRequest

if TYPE_CHECKING:
    from peripety.api.session.v1 import session_pb2 as pb

__all__ = ["comparison", "fork", "new_session", "odds_request", "rewinding", "turn_request", "watch_request"]


def new_session(request: pb.CreateSessionRequest) -> NewSession:
    """Convert a request to create a session."""
    return NewSession(
        request_id=request.request_id,
        scenario_id=request.scenario_id,
        spec_hash=request.spec_hash or None,
        seed=request.seed if request.HasField("seed") else None,
        pov=request.pov_entity_id or None,
        narrator=_narrator(request.narrator),
        table=table_from_proto(request.seat_config) if request.HasField("seat_config") else None,
    )


def _narrator(options: pb.NarratorOptions) -> NarratorOptions:
    budgets = {
        name: budget_from_proto(f".narrator.{name}", getattr(options, name))
        for name in ("turn_budget", "session_budget")
        if options.HasField(name)
    }
    return NarratorOptions(options.model or None, options.language or None, **budgets)


def odds_request(request: pb.ForecastOutcomesRequest) -> OddsRequest:
    """Convert a request for a forecast.

    Raises:
        InvalidArgumentError: the persona is unknown.
    """
    if request.persona and request.persona not in PERSONAS:
        raise refuse(".persona", "is not a known Persona")
    return OddsRequest(
        session_id=request.session_id,
        persona=PERSONAS.get(request.persona, "random"),
        runs=request.runs,
        horizon=request.horizon,
        seed=request.seed if request.HasField("seed") else None,
        actions=tuple(action_call(index, call) for index, call in enumerate(request.actions)),
    )


def fork(request: pb.ForkSessionRequest) -> Fork:
    """Convert a request to fork a session."""
    return Fork(
        request_id=request.request_id,
        session_id=request.session_id,
        turn=request.turn if request.HasField("turn") else None,
        seed=request.seed if request.HasField("seed") else None,
        pov=request.pov_entity_id or None,
    )


def rewinding(request: pb.RewindSessionRequest) -> Rewinding:
    """Convert a request to rewind a session."""
    return Rewinding(
        request_id=request.request_id,
        session_id=request.session_id,
        turn=request.turn,
        expected_turn=request.expected_turn,
        pov=request.pov_entity_id or None,
    )


def comparison(request: pb.CompareBranchesRequest) -> Comparison:
    """Convert a request to compare sessions."""
    return Comparison(
        session_id=request.session_id,
        other_session_id=request.other_session_id,
        pov=request.pov_entity_id or None,
        page_size=request.page_size,
        page_token=request.page_token,
    )


def turn_request(request: pb.TakeTurnRequest) -> TurnRequest:
    """Convert a request to play a turn."""
    return TurnRequest(
        session_id=request.session_id,
        request_id=request.request_id,
        expected_turn=request.expected_turn,
        actions=tuple(action_call(index, call) for index, call in enumerate(request.actions)),
        input=request.input,
        pov=request.pov_entity_id or None,
        seat_id=request.seat_id or None,
    )


def watch_request(request: pb.WatchSessionRequest) -> WatchRequest:
    """Convert a request to watch a session."""
    return WatchRequest(
        session_id=request.session_id,
        pov=request.pov_entity_id or None,
        after=request.after_sequence,
        attempt_id=request.attempt_id or None,
        delay_turns=request.delay_turns,
    )
