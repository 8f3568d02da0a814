"""Conversion of domain objects to response messages."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.gateway.messages.answers import spent_to_proto
from peripety.gateway.messages.requests import budget_to_proto
from peripety.scenarios.messages.parts import rate_to_proto
from peripety.sessions import events as happened
from peripety.sessions.messages.parts import (
    action_to_proto,
    change_to_proto,
    legal_actions,
    log_line,
    params_to_proto,
    roll_to_proto,
    rule_error,
    status_to_proto,
    timestamp,
)
from peripety.sessions.messages.tables import table_to_proto
from peripety.sessions.model import NarratorOptions
from peripety.sim import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.sessions.branches.model import Compared
    from peripety.sessions.looks import SeenSession
    from peripety.sessions.model import SessionSummary
    from peripety.sessions.odds import Odds
    from peripety.sessions.seen import Seen, SeenTurn

__all__ = [
    "comparison",
    "odds_message",
    "session_message",
    "summary",
    "turn_bytes",
    "turn_event",
    "turn_message",
]


def session_message(seen: SeenSession) -> pb.Session:
    """Convert the view of a session to a message."""
    session = seen.session
    return pb.Session(
        session_id=session.session_id,
        scenario_id=session.scenario_id,
        spec_hash=session.spec_hash,
        seed=session.seed,
        turn=session.turn,
        status=status_to_proto(session.status),
        state=seen.state,
        state_hash=session.state_hash,
        chain_hash=session.chain_hash,
        legal_actions=legal_actions(seen.spec, seen.legal_actions),
        last_sequence=session.last_sequence,
        create_time=timestamp(session.created),
        update_time=timestamp(session.updated),
        pov_entity_id=seen.viewer or "",
        usage=spent_to_proto(session.usage),
        narrator=_narrator(session.narrator),
        seat_config=table_to_proto(session.table) if session.table else None,
        next_seat_id=session.next_seat_id or "",
        parent_session_id=session.parent.session_id if session.parent else "",
        parent_turn=session.parent.turn if session.parent else 0,
    )


def _narrator(options: NarratorOptions) -> pb.NarratorOptions | None:
    if options == NarratorOptions():
        return None
    budgets = {"turn_budget": options.turn_budget, "session_budget": options.session_budget}
    return pb.NarratorOptions(
        model=options.model or "",
        language=options.language or "",
        **{name: budget_to_proto(budget) for name, budget in budgets.items() if budget is not None},
    )


def summary(session: SessionSummary) -> pb.SessionSummary:
    """Convert a session summary to a message."""
    return pb.SessionSummary(
        session_id=session.session_id,
        scenario_id=session.scenario_id,
        spec_hash=session.spec_hash,
        turn=session.turn,
        status=status_to_proto(session.status),
        create_time=timestamp(session.created),
        update_time=timestamp(session.updated),
        parent_session_id=session.parent.session_id if session.parent else "",
    )


def comparison(compared: Compared) -> pb.CompareBranchesResponse:
    """Convert a comparison of two sessions to a message."""
    return pb.CompareBranchesResponse(
        common_turn=compared.common_turn,
        differences=[
            pb.StateDifference(path=one.path, here=_json(one.here), there=_json(one.there))
            for one in compared.differences
        ],
        turns=[
            pb.BranchTurn(
                turn=pair.turn,
                here=None if pair.here is None else turn_message(pair.here),
                there=None if pair.there is None else turn_message(pair.there),
            )
            for pair in compared.turns
        ],
        next_page_token=compared.next_page_token,
    )


def _json(value: Any) -> bytes | None:
    return None if value is ABSENT else sim.canonical(value)


def odds_message(sequence: int, odds: Odds) -> pb.ForecastOutcomesResponse:
    """Convert the current forecast to a message."""
    return pb.ForecastOutcomesResponse(
        sequence=sequence,
        turn=odds.turn,
        runs=odds.runs,
        outcomes=[
            pb.OutcomeProbability(
                condition=end.condition,
                kind=engine.RunStatusKind.Value(f"RUN_STATUS_KIND_{end.kind.upper()}"),
                rate=rate_to_proto(end.rate),
            )
            for end in odds.ends
        ],
        survived=rate_to_proto(odds.survived),
        final=odds.final,
    )


def turn_message(seen: SeenTurn) -> pb.Turn:
    """Convert the view of a turn to a message for lists; void events are left out."""
    turn = pb.Turn(
        turn=seen.turn.turn,
        request_id=seen.turn.request_id,
        first_sequence=seen.turn.first_sequence,
        last_sequence=seen.turn.last_sequence,
    )
    for seen_event in seen.events:
        match seen_event.event:
            case happened.Accepted() as event:
                turn.actions.extend(map(action_to_proto, event.actions))
                turn.input = event.input
            case happened.ActionResolved() as event:
                turn.log.extend(map(log_line, event.log))
            case happened.Rolled() as event:
                turn.rolls.append(roll_to_proto(event.roll))
            case happened.WorldResolved() as event:
                turn.event_id = event.event_id or ""
                turn.log.extend(map(log_line, event.log))
            case happened.NarrativeRetracted():
                del turn.dialogue[:]
            case happened.Dialogue() as event:
                turn.dialogue.add(entity_id=event.entity_id, utterance=event.utterance)
            case happened.Committed() as event:
                members = _members(event, seen_event.spec)
                for name in ("legal_actions", "next_seat_id"):
                    members.pop(name)
                turn.MergeFrom(pb.Turn(**members))
    return turn


def turn_bytes(seen: SeenTurn) -> int:
    """Return the size of the largest message that carries a turn or one of its events."""
    return max(turn_message(seen).ByteSize(), *(turn_event(event).ByteSize() for event in seen.events))


def turn_event(seen: Seen) -> pb.TurnEvent:
    """Convert the view of an event to a message."""
    event = pb.TurnEvent(session_id=seen.session_id, turn=seen.turn, sequence=seen.sequence)
    if seen.event is not None:
        message: dict[str, Any] = {happened.kind_of(seen.event): _members(seen.event, seen.spec)}
        event.MergeFrom(pb.TurnEvent(**message))
    return event


def _members(event: happened.Event, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an event's message, converted from the event's fields of the same names."""
    converters = _CONVERTERS | {"legal_actions": partial(legal_actions, spec)}
    return {
        _RENAMED.get(field.name, field.name): converters.get(field.name, _unchanged)(
            getattr(event, field.name)
        )
        for field in fields(event)
    }


def _unchanged(value: Any) -> Any:
    return value


_RENAMED = {"conduct": "narrator_stats"}
"""Fields of the contract whose name differs from that of the stored event."""

_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "actions": lambda calls: [action_to_proto(call) for call in calls],
    "changes": lambda changes: [change_to_proto(change) for change in changes],
    "commit_time": timestamp,
    "conduct": lambda conduct: pb.NarratorStats(**asdict(conduct)),
    "errors": lambda errors: [rule_error(error) for error in errors],
    "log": lambda lines: [log_line(line) for line in lines],
    "params": params_to_proto,
    "reasons": lambda errors: [rule_error(error) for error in errors],
    "roll": roll_to_proto,
    "resolution": lambda resolution: pb.Resolution.Value(f"RESOLUTION_{resolution.name}"),
    "status": status_to_proto,
    "usage": spent_to_proto,
}
"""Converters of event fields to message fields; other fields are the same in both."""
