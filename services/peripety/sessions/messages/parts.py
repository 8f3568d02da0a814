"""Conversion of the parts that requests and responses share: actions, changes, statuses and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.timestamp_pb2 import Timestamp

from peripety import sim
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.requests import refuse
from peripety.sessions.model import ActionCall
from peripety.sim import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.sim import Change, LogLine, RollResult, RuleError, Status

__all__ = [
    "action_call",
    "action_to_proto",
    "change_to_proto",
    "legal_actions",
    "log_line",
    "params_to_proto",
    "roll_to_proto",
    "rule_error",
    "status_to_proto",
    "timestamp",
]


def action_call(index: int, call: engine.ActionCall) -> ActionCall:
    """Convert the action at an index of a request's list.

    Raises:
        InvalidArgumentError: a parameter is empty.
    """
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


def action_to_proto(call: ActionCall) -> engine.ActionCall:
    """Convert an action call to a message."""
    return engine.ActionCall(action_id=call.action_id, params=params_to_proto(call.params))


def params_to_proto(params: Mapping[str, Any]) -> dict[str, engine.ParamValue]:
    """Convert the parameters of an action to messages."""
    return {name: _param_value(value) for name, value in params.items()}


def legal_actions(spec: Mapping[str, Any], ids: Iterable[str]) -> list[engine.LegalAction]:
    """Convert legal actions to messages with the descriptions of the scenario."""
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


def change_to_proto(change: Change) -> engine.Change:
    """Convert a change to a message; its values are canonical JSON."""
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


def log_line(line: LogLine) -> engine.LogLine:
    """Convert a log line to a message."""
    return engine.LogLine(turn=line.turn, message=line.message, cause=_cause(line.cause))


def rule_error(error: RuleError) -> engine.RuleError:
    """Convert the error of a rule that failed or rejected an action to a message."""
    return engine.RuleError(code=error.code, rule=error.rule, message=error.message)


def status_to_proto(status: Status) -> engine.RunStatus:
    """Convert the status of a run to a message."""
    return engine.RunStatus(
        kind=engine.RunStatusKind.Value(f"RUN_STATUS_KIND_{status.kind.upper()}"),
        condition=status.condition or "",
        message=status.message or "",
    )


def roll_to_proto(roll: RollResult) -> engine.Roll:
    """Convert a die roll to a message."""
    return engine.Roll(
        kind=roll.kind,
        target=roll.target or "",
        difficulty=roll.difficulty,
        value=roll.roll,
        success=roll.success,
        index=roll.draw.index,
    )


def timestamp(microseconds: int) -> Timestamp:
    """Convert microseconds since 1970 to a timestamp message."""
    time = Timestamp()
    time.FromMicroseconds(microseconds)
    return time
