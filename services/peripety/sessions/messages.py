"""Sessions ↔ protobuf messages, nothing else."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from google.protobuf.timestamp_pb2 import Timestamp

from peripety import sim
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.errors import UnsupportedError
from peripety.gateway.messages.answers import spent_to_proto
from peripety.requests import refuse
from peripety.sessions import events as happened
from peripety.sessions.model import ActionCall, NewSession, TurnRequest
from peripety.sim import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from google.protobuf.message import Message

    from peripety.sessions.model import Session
    from peripety.sessions.sessions import SeenSession
    from peripety.sessions.turns import Seen, SeenTurn
    from peripety.sim import Change, LogLine, RollResult, RuleError, Status

__all__ = [
    "new_session",
    "session_message",
    "summary",
    "turn_bytes",
    "turn_event",
    "turn_message",
    "turn_request",
]


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
        actions=tuple(_action_call(index, call) for index, call in enumerate(request.actions)),
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


def _action_call(index: int, call: engine.ActionCall) -> ActionCall:
    return ActionCall(
        call.action_id,
        {
            name: _param(f".actions[{index}].params[{name[:64]}]", value)
            for name, value in sorted(call.params.items())
        },
    )


def _param(field: str, value: engine.ParamValue) -> Any:
    kind = value.WhichOneof("kind")
    if kind is None:
        raise refuse(field, "is empty; set number, text or flag")
    return getattr(value, kind)


def _param_value(value: Any) -> engine.ParamValue:
    if isinstance(value, bool):
        return engine.ParamValue(flag=value)
    if isinstance(value, str):
        return engine.ParamValue(text=value)
    return engine.ParamValue(number=value)


def _action_to_proto(call: ActionCall) -> engine.ActionCall:
    return engine.ActionCall(action_id=call.action_id, params=_params(call.params))


def _params(params: Mapping[str, Any]) -> dict[str, engine.ParamValue]:
    return {name: _param_value(value) for name, value in params.items()}


def session_message(seen: SeenSession) -> pb.Session:
    """A session as a viewer sees it."""
    session = seen.session
    return pb.Session(
        session_id=session.session_id,
        scenario_id=session.scenario_id,
        spec_hash=session.spec_hash,
        seed=session.seed,
        turn=session.turn,
        status=_status(session.status),
        state=seen.state,
        state_hash=session.state_hash,
        chain_hash=session.chain_hash,
        legal_actions=_legal_actions(seen.spec, seen.legal_actions),
        last_sequence=session.last_sequence,
        create_time=_timestamp(session.created),
        update_time=_timestamp(session.updated),
        pov_entity_id=seen.viewer or "",
        usage=spent_to_proto(session.usage),
    )


def summary(session: Session) -> pb.SessionSummary:
    """A session without its weight."""
    return pb.SessionSummary(
        session_id=session.session_id,
        scenario_id=session.scenario_id,
        spec_hash=session.spec_hash,
        turn=session.turn,
        status=_status(session.status),
        create_time=_timestamp(session.created),
        update_time=_timestamp(session.updated),
    )


def turn_message(seen: SeenTurn) -> pb.Turn:
    """A turn as a list shows it: what its events say, without those that were void in the end."""
    turn = pb.Turn(
        turn=seen.turn.turn,
        request_id=seen.turn.request_id,
        first_sequence=seen.turn.first_sequence,
        last_sequence=seen.turn.last_sequence,
    )
    for seen_event in seen.events:
        match seen_event.event:
            case happened.Accepted() as event:
                turn.actions.extend(map(_action_to_proto, event.actions))
                turn.input = event.input
            case happened.ActionResolved() as event:
                turn.log.extend(map(_log_line, event.log))
            case happened.Rolled() as event:
                turn.rolls.append(_roll(event.roll))
            case happened.WorldResolved() as event:
                turn.event_id = event.event_id or ""
                turn.log.extend(map(_log_line, event.log))
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
    """The bytes of the largest message that carries a turn or an event of it."""
    return max(turn_message(seen).ByteSize(), *(turn_event(event).ByteSize() for event in seen.events))


def turn_event(seen: Seen) -> pb.TurnEvent:
    """An event of a turn as a viewer sees it."""
    event = pb.TurnEvent(session_id=seen.session_id, turn=seen.turn, sequence=seen.sequence)
    if seen.event is not None:
        message: dict[str, Any] = {happened.kind_of(seen.event): _members(seen.event, seen.spec)}
        event.MergeFrom(pb.TurnEvent(**message))
    return event


def _members(event: happened.Event, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event's message: those of the event under the same names, in their protobuf form."""
    converters = _CONVERTERS | {"legal_actions": partial(_legal_actions, spec)}
    return {
        field.name: converters.get(field.name, _unchanged)(getattr(event, field.name))
        for field in fields(event)
    }


def _unchanged(value: Any) -> Any:
    return value


def _legal_actions(spec: Mapping[str, Any], ids: Iterable[str]) -> list[engine.LegalAction]:
    actions = {action["id"]: action for action in spec["actions"]}
    return [
        engine.LegalAction(
            action_id=name,
            name=actions[name].get("name", name),
            description=actions[name].get("description", ""),
            params=[_param_schema(key, schema) for key, schema in sorted(actions[name]["params"].items())],
        )
        for name in ids
    ]


def _param_schema(name: str, schema: Mapping[str, Any]) -> engine.Param:
    return engine.Param(
        name=name,
        type=engine.ParamType.Value(f"PARAM_TYPE_{schema['type'].upper()}"),
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        choices=map(_param_value, schema.get("enum", ())),
        max_length=schema.get("maxLength"),
    )


def _change(change: Change) -> engine.Change:
    return engine.Change(
        path=change.path,
        op=engine.EffectOp.Value(f"EFFECT_OP_{change.op.upper()}"),
        before=None if change.before is ABSENT else sim.canonical(change.before),
        after=None if change.after is ABSENT else sim.canonical(change.after),
        cause=_cause(change.cause),
    )


def _cause(cause: str) -> engine.Cause:
    kind, _, name = cause.partition(":")
    return engine.Cause(kind=engine.CauseKind.Value(f"CAUSE_KIND_{kind.upper()}"), id=name)


def _log_line(line: LogLine) -> engine.LogLine:
    return engine.LogLine(turn=line.turn, message=line.message, cause=_cause(line.cause))


def _rule_error(error: RuleError) -> engine.RuleError:
    return engine.RuleError(code=error.code, rule=error.rule, message=error.message)


def _status(status: Status) -> engine.RunStatus:
    return engine.RunStatus(
        kind=engine.RunStatusKind.Value(f"RUN_STATUS_KIND_{status.kind.upper()}"),
        condition=status.condition or "",
        message=status.message or "",
    )


def _roll(roll: RollResult) -> engine.Roll:
    return engine.Roll(
        kind=roll.kind,
        target=roll.target or "",
        difficulty=roll.difficulty,
        value=roll.roll,
        success=roll.success,
        index=roll.draw.index,
    )


def _timestamp(microseconds: int) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromMicroseconds(microseconds)
    return timestamp


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "actions": lambda calls: [_action_to_proto(call) for call in calls],
    "changes": lambda changes: [_change(change) for change in changes],
    "commit_time": _timestamp,
    "conduct": lambda conduct: pb.NarratorConduct(**asdict(conduct)),
    "errors": lambda errors: [_rule_error(error) for error in errors],
    "log": lambda lines: [_log_line(line) for line in lines],
    "params": _params,
    "reasons": lambda errors: [_rule_error(error) for error in errors],
    "roll": _roll,
    "resolution": lambda resolution: pb.Resolution.Value(f"RESOLUTION_{resolution.name}"),
    "status": _status,
    "usage": spent_to_proto,
}
"""How the fields of events become those of messages; the others are the same in both."""
