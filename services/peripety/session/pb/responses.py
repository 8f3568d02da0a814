"""Sessions, events and replays to protobuf; chunks of bundles from protobuf."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from google.protobuf.message_factory import GetMessageClass

from peripety import engine as engine_api
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.core.validation import check_request_id
from peripety.engine import ABSENT
from peripety.errors import field_error
from peripety.gateway.pb.requests import budget_to_proto
from peripety.gateway.pb.responses import spent_to_proto
from peripety.rpc.messages import copy_fields
from peripety.session import events
from peripety.session.bundles.exporter import ReplayCompleted
from peripety.session.pb.requests import (
    change_to_proto,
    legal_actions_to_proto,
    roll_to_proto,
    seat_config_to_proto,
)
from peripety.session.types import NarratorOptions
from peripety.session.watch.topic import SeatActed, SessionRewound, WatchClosed, WatchHeartbeat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from peripety.engine import Status
    from peripety.session.branch_types import BranchComparison
    from peripety.session.bundles.verifier import ReplayedTurn
    from peripety.session.forecast import OutcomeForecast
    from peripety.session.session_view import SessionView
    from peripety.session.types import SessionSummary
    from peripety.session.visibility import TurnEventView, TurnView
    from peripety.session.watch.topic import WatchEvent


_MAX_CHUNK_BYTES = 1 << 20


async def bundle_chunks_from_proto(
    requests: AsyncIterator[pb.ImportSessionRequest],
) -> tuple[str, AsyncIterator[bytes]]:
    """Return the request id of an import and the chunks of its bundle.

    Raises:
        InvalidArgumentError: the first message is missing, or its request id is invalid.
    """
    first = await anext(requests, None)
    request_id = "" if first is None else first.request_id
    check_request_id(request_id)

    async def pieces() -> AsyncIterator[bytes]:
        request = first
        while request is not None:
            if len(request.chunk) > _MAX_CHUNK_BYTES:
                raise field_error(
                    ".chunk",
                    f"has {len(request.chunk)} bytes; the limit is {_MAX_CHUNK_BYTES}",
                )
            yield request.chunk
            request = await anext(requests, None)

    return request_id, pieces()


def replay_event_to_proto(sequence: int, turn: ReplayedTurn | ReplayCompleted) -> pb.ReplaySessionResponse:
    """Convert a replayed turn or the result of a replay to a message."""
    response = pb.ReplaySessionResponse
    if isinstance(turn, ReplayCompleted):
        return response(sequence=sequence, completed=copy_fields(response.Completed, turn))
    return response(sequence=sequence, turn_replayed=copy_fields(response.TurnReplayed, turn))


def session_to_proto(seen: SessionView) -> pb.Session:
    """Convert the view of a session to a message."""
    session = seen.session
    return copy_fields(
        pb.Session,
        session,
        status=_status_to_proto(seen.spec, session.status),
        state=seen.state,
        legal_actions=legal_actions_to_proto(seen.spec, seen.legal_actions),
        create_time=session.created,
        update_time=session.updated,
        pov_entity_id=seen.viewer,
        usage=spent_to_proto(session.usage),
        narrator=_narrator_to_proto(session.narrator),
        seat_config=seat_config_to_proto(session.table) if session.table else None,
        parent_session_id=session.parent and session.parent.session_id,
        parent_turn=session.parent and session.parent.turn,
    )


def _status_to_proto(spec: Mapping[str, Any], status: Status) -> engine.RunStatus:
    """Convert the status of a run to a message with the epilogue of its ending."""
    epilogue = engine_api.read_epilogue(spec.get("epilogues", {}), status)
    return copy_fields(engine.RunStatus, status, epilogue=epilogue)


def _narrator_to_proto(options: NarratorOptions) -> pb.NarratorOptions | None:
    if options == NarratorOptions():
        return None
    budgets = {"turn_budget": options.turn_budget, "session_budget": options.session_budget}
    return pb.NarratorOptions(
        model=options.model or "",
        language=options.language or "",
        actors=options.actors,
        **{name: budget_to_proto(budget) for name, budget in budgets.items() if budget is not None},
    )


def session_summary_to_proto(session: SessionSummary) -> pb.SessionSummary:
    """Convert a session summary to a message."""
    return copy_fields(
        pb.SessionSummary,
        session,
        status=replace(session.status, epilogue=None),
        create_time=session.created,
        update_time=session.updated,
        parent_session_id=session.parent and session.parent.session_id,
        seat_ids=[] if session.table is None else [seat.seat_id for seat in session.table.seats],
    )


def comparison_to_proto(compared: BranchComparison) -> pb.CompareBranchesResponse:
    """Convert a comparison of two sessions to a message."""
    return pb.CompareBranchesResponse(
        common_turn=compared.common_turn,
        differences=[
            pb.StateDifference(path=one.path, here=_json_or_none(one.here), there=_json_or_none(one.there))
            for one in compared.differences
        ],
        turns=[
            pb.BranchTurn(
                turn=pair.turn,
                here=None if pair.here is None else turn_to_proto(pair.here),
                there=None if pair.there is None else turn_to_proto(pair.there),
            )
            for pair in compared.turns
        ],
        next_page_token=compared.next_page_token,
    )


def _json_or_none(value: Any) -> bytes | None:
    return None if value is ABSENT else engine_api.canonicalize(value)


def forecast_to_proto(sequence: int, odds: OutcomeForecast) -> pb.ForecastOutcomesResponse:
    """Convert the current forecast to a message."""
    return copy_fields(pb.ForecastOutcomesResponse, odds, sequence=sequence, outcomes=odds.endings)


def turn_to_proto(seen: TurnView) -> pb.Turn:
    """Convert the view of a turn to a message for lists; void events are left out."""
    turn = pb.Turn(
        turn=seen.turn.turn,
        request_id=seen.turn.request_id,
        first_sequence=seen.turn.first_sequence,
        last_sequence=seen.turn.last_sequence,
    )
    for seen_event in seen.events:
        match seen_event.event:
            case events.Accepted() as event:
                turn.actions.extend(copy_fields(engine.ActionCall, call) for call in event.actions)
                turn.input = event.input
            case events.ActionResolved() as event:
                turn.log.extend(copy_fields(engine.LogLine, line) for line in event.log)
            case events.Rolled() as event:
                turn.rolls.append(roll_to_proto(event.roll))
            case events.WorldResolved() as event:
                turn.event_id = event.event_id or ""
                turn.log.extend(copy_fields(engine.LogLine, line) for line in event.log)
            case events.NarrativeRetracted():
                del turn.dialogue[:]
            case events.DialogueSpoken() as event:
                turn.dialogue.add(entity_id=event.entity_id, utterance=event.utterance)
            case events.Committed():
                committed = turn_event_to_proto(seen_event).committed
                for name in ("legal_actions", "next_seat_id"):
                    committed.ClearField(name)
                turn.MergeFrom(pb.Turn(**{field.name: value for field, value in committed.ListFields()}))
    return turn


def max_turn_message_size(seen: TurnView) -> int:
    """Return the size of the largest message that carries a turn or one of its events."""
    return max(
        turn_to_proto(seen).ByteSize(),
        *(turn_event_to_proto(event).ByteSize() for event in seen.events),
    )


_TURN_EVENTS: dict[str, Any] = {
    field.name: GetMessageClass(field.message_type)
    for field in pb.TurnEvent.DESCRIPTOR.oneofs_by_name["event"].fields
    if field.message_type is not None
}
"""Message types of the events, by kind."""


def turn_event_to_proto(seen: TurnEventView) -> pb.TurnEvent:
    """Convert the view of an event to a message."""
    message = pb.TurnEvent(session_id=seen.session_id, turn=seen.turn, sequence=seen.sequence)
    given: dict[str, Any] = {}
    match seen.event:
        case None:
            return message
        case events.ActionResolved() | events.WorldResolved() as event:
            given = {"changes": map(change_to_proto, event.changes)}
            if isinstance(event, events.WorldResolved):
                given["status"] = _status_to_proto(seen.spec, event.status)
        case events.Rolled() as event:
            given = {"roll": roll_to_proto(event.roll)}
        case events.Committed() as event:
            given = {
                "status": _status_to_proto(seen.spec, event.status),
                "changes": map(change_to_proto, event.changes),
                "legal_actions": legal_actions_to_proto(seen.spec, event.legal_actions),
                "narrator_stats": event.conduct,
                "usage": spent_to_proto(event.usage),
            }
    kind = events.event_kind(seen.event)
    getattr(message, kind).CopyFrom(copy_fields(_TURN_EVENTS[kind], seen.event, **given))
    return message


def encode_watch_event(event: WatchEvent) -> bytes:
    """Encode a watch event; an event of a turn is encoded once for all viewers with the same view."""
    response = pb.WatchSessionResponse
    match event:
        case WatchHeartbeat():
            message = response(heartbeat=copy_fields(response.Heartbeat, event))
        case SeatActed():
            acted = copy_fields(response.SeatActed, event, waiting_seat_ids=event.waiting)
            message = response(seat_acted=acted)
        case SessionRewound():
            message = response(rewound=copy_fields(response.Rewound, event))
        case WatchClosed():
            message = response(closed=copy_fields(response.Closed, event))
        case _:
            return event.encode_once(_encode_turn_event)
    return message.SerializeToString()


def _encode_turn_event(seen: TurnEventView) -> bytes:
    return pb.WatchSessionResponse(turn_event=turn_event_to_proto(seen)).SerializeToString()
