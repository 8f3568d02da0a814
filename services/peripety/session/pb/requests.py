"""Requests of SessionService from protobuf; changes, rolls and seats both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety import engine as engine_api
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.engine import ABSENT
from peripety.errors import field_error
from peripety.gateway.pb.requests import budget_from_proto
from peripety.rpc.messages import copy_fields, members_by_number, param_to_proto, params_from_proto
from peripety.scenario.pb.requests import PERSONA_NAMES
from peripety.session.branch_types import CompareRequest, ForkRequest, RewindRequest
from peripety.session.seats.turn_order import SubmitActionsRequest
from peripety.session.types import (
    ForecastRequest,
    NarratorOptions,
    NewSession,
    PlayerAction,
    Seat,
    SeatConfig,
    SessionListing,
    TurnOrder,
    TurnRequest,
)
from peripety.session.watch.topic import WatchRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.engine import Change, RollResult


def action_from_proto(index: int, call: engine.ActionCall) -> PlayerAction:
    """Convert the action at an index of a request's list.

    Raises:
        InvalidArgumentError: a parameter is empty.
    """
    return PlayerAction(call.action_id, params_from_proto(f".actions[{index}]", call.params))


def legal_actions_to_proto(spec: Mapping[str, Any], ids: Iterable[str]) -> list[engine.LegalAction]:
    """Convert legal actions to messages with the descriptions of the scenario."""
    actions = {action["id"]: action for action in spec["actions"]}
    return [
        engine.LegalAction(
            action_id=name,
            name=actions[name].get("name", name),
            description=actions[name].get("description", ""),
            params=[
                _param_schema_to_proto(key, schema) for key, schema in sorted(actions[name]["params"].items())
            ],
        )
        for name in ids
    ]


def _param_schema_to_proto(name: str, schema: Mapping[str, Any]) -> engine.Param:
    return engine.Param(
        name=name,
        type=engine.ParamType.Value(f"PARAM_TYPE_{schema['type'].upper()}"),
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        choices=map(param_to_proto, schema.get("enum", ())),
        max_length=schema.get("maxLength"),
    )


_MAX_STATUSES = 10
_STATUS_KINDS = {
    number: name.removeprefix("RUN_STATUS_KIND_").lower()
    for name, number in engine.RunStatusKind.items()
    if number != engine.RUN_STATUS_KIND_UNSPECIFIED
}


def session_listing_from_proto(request: pb.ListSessionsRequest) -> SessionListing:
    """Convert the filter and the order of a list of sessions.

    Raises:
        InvalidArgumentError: a status or the order is unknown, or there are too many statuses.
    """
    if len(request.statuses) > _MAX_STATUSES:
        raise field_error(".statuses", f"has more than {_MAX_STATUSES} entries")
    for index, number in enumerate(request.statuses):
        if number not in _STATUS_KINDS:
            raise field_error(f".statuses[{index}]", "is not a known RunStatusKind")
    if request.order not in pb.SessionOrder.values():
        raise field_error(".order", "is not a known SessionOrder")
    return SessionListing(
        request.scenario_id or None,
        frozenset(_STATUS_KINDS[number] for number in request.statuses),
        request.order == pb.SESSION_ORDER_UPDATE_TIME,
    )


def change_to_proto(change: Change) -> engine.Change:
    """Convert a change to a message; its values are canonical JSON."""
    return copy_fields(
        engine.Change,
        change,
        before=None if change.before is ABSENT else engine_api.canonicalize(change.before),
        after=None if change.after is ABSENT else engine_api.canonicalize(change.after),
    )


def roll_to_proto(roll: RollResult) -> engine.Roll:
    """Convert a die roll to a message."""
    return copy_fields(engine.Roll, roll, value=roll.roll, index=roll.draw.index)


_ORDER_FROM_PROTO = members_by_number(pb.SeatOrder, TurnOrder, TurnOrder.ROTATING)


def seat_config_from_proto(table: pb.SeatConfig) -> SeatConfig:
    """Convert the seat configuration of a request.

    Raises:
        InvalidArgumentError: the seat order is unknown.
    """
    if table.order not in _ORDER_FROM_PROTO:
        raise field_error(".seat_config.order", "is not a known SeatOrder")
    timeout = table.seat_timeout
    return SeatConfig(
        tuple(Seat(seat.seat_id, seat.entity_id) for seat in table.seats),
        _ORDER_FROM_PROTO[table.order],
        timeout.seconds + timeout.nanos / 1e9 if table.HasField("seat_timeout") else None,
    )


def seat_config_to_proto(table: SeatConfig) -> pb.SeatConfig:
    """Convert a seat configuration to a message."""
    timeout = None if table.seconds is None else round(table.seconds, 6)
    return copy_fields(pb.SeatConfig, table, seat_timeout=timeout)


def submission_from_proto(request: pb.SubmitActionsRequest) -> SubmitActionsRequest:
    """Convert a request to submit the actions of a seat."""
    return SubmitActionsRequest(
        session_id=request.session_id,
        request_id=request.request_id,
        expected_turn=request.expected_turn,
        seat_id=request.seat_id,
        actions=tuple(action_from_proto(index, call) for index, call in enumerate(request.actions)),
        input=request.input,
    )


def new_session_from_proto(request: pb.CreateSessionRequest) -> NewSession:
    """Convert a request to create a session."""
    return NewSession(
        request_id=request.request_id,
        scenario_id=request.scenario_id,
        spec_hash=request.spec_hash or None,
        seed=request.seed if request.HasField("seed") else None,
        pov=request.pov_entity_id or None,
        narrator=_narrator_from_proto(request.narrator),
        table=seat_config_from_proto(request.seat_config) if request.HasField("seat_config") else None,
    )


def _narrator_from_proto(options: pb.NarratorOptions) -> NarratorOptions:
    budgets = {
        name: budget_from_proto(f".narrator.{name}", getattr(options, name))
        for name in ("turn_budget", "session_budget")
        if options.HasField(name)
    }
    return NarratorOptions(
        options.model or None,
        options.language or None,
        **budgets,
        actors=options.actors,
    )


def forecast_request_from_proto(request: pb.ForecastOutcomesRequest) -> ForecastRequest:
    """Convert a request for a forecast.

    Raises:
        InvalidArgumentError: the persona is unknown.
    """
    if request.persona and request.persona not in PERSONA_NAMES:
        raise field_error(".persona", "is not a known Persona")
    return ForecastRequest(
        session_id=request.session_id,
        persona=PERSONA_NAMES.get(request.persona, "random"),
        runs=request.runs,
        horizon=request.horizon,
        seed=request.seed if request.HasField("seed") else None,
        actions=tuple(action_from_proto(index, call) for index, call in enumerate(request.actions)),
        pov=request.pov_entity_id or None,
    )


def fork_request_from_proto(request: pb.ForkSessionRequest) -> ForkRequest:
    """Convert a request to fork a session."""
    return ForkRequest(
        request_id=request.request_id,
        session_id=request.session_id,
        turn=request.turn if request.HasField("turn") else None,
        seed=request.seed if request.HasField("seed") else None,
        pov=request.pov_entity_id or None,
    )


def rewind_request_from_proto(request: pb.RewindSessionRequest) -> RewindRequest:
    """Convert a request to rewind a session."""
    return RewindRequest(
        request_id=request.request_id,
        session_id=request.session_id,
        turn=request.turn,
        expected_turn=request.expected_turn,
        pov=request.pov_entity_id or None,
    )


def compare_request_from_proto(request: pb.CompareBranchesRequest) -> CompareRequest:
    """Convert a request to compare sessions."""
    return CompareRequest(
        session_id=request.session_id,
        other_session_id=request.other_session_id,
        pov=request.pov_entity_id or None,
        page_size=request.page_size,
        page_token=request.page_token,
    )


def turn_request_from_proto(request: pb.TakeTurnRequest) -> TurnRequest:
    """Convert a request to play a turn."""
    return TurnRequest(
        session_id=request.session_id,
        request_id=request.request_id,
        expected_turn=request.expected_turn,
        actions=tuple(action_from_proto(index, call) for index, call in enumerate(request.actions)),
        input=request.input,
        pov=request.pov_entity_id or None,
        seat_id=request.seat_id or None,
    )


def watch_request_from_proto(request: pb.WatchSessionRequest) -> WatchRequest:
    """Convert a request to watch a session."""
    return WatchRequest(
        session_id=request.session_id,
        pov=request.pov_entity_id or None,
        after=request.after_sequence,
        attempt_id=request.attempt_id or None,
        delay_turns=request.delay_turns,
    )
