"""Phases of a turn: due schedules, actions, the narrator's changes, events, decay, end conditions.

At most one random event is drawn in a turn; lasting ones follow it. The module also validates and samples
parameters of actions, and rolls dice: a twenty-sided die against a difficulty, with a random stream for
each kind and target.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.effects import (
    CallTrace,
    apply_effects,
    apply_rule,
    escape_segment,
    is_satisfied,
    select_event,
    try_effects,
)
from peripety.engine._reference.jsonlogic_operators import require_finite
from peripety.engine._reference.limits import MAX_ROLLS
from peripety.engine.backend_protocol import EngineError
from peripety.engine.rng import choose, draw, stream_key, to_unit_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine._reference.state import ReferenceState


def find_parameter_problems(declared: dict[str, Any], given: Any) -> list[str]:
    """Return the violations of the declared parameters, one sentence each, by name."""
    if not isinstance(given, dict):
        return ["the parameters must be an object"]
    found = []
    for name in sorted(declared.keys() | given.keys()):
        if name not in declared:
            found.append(f"'{name}' is not a parameter of this action")
        elif name not in given:
            found.append(f"the parameter '{name}' is missing")
        else:
            problem = _find_param_problem(declared[name], given[name])
            if problem:
                found.append(f"the parameter '{name}' {problem}")
    return found


def _find_param_problem(schema: dict[str, Any], value: Any) -> str | None:
    kind = schema["type"]
    if not _has_type(kind, value):
        return f"must be of type {kind}"
    if "enum" in schema and not any(
        type(option) is type(value) and option == value for option in schema["enum"]
    ):
        return "is not one of the allowed values"
    if kind == "string":
        limit = schema.get("maxLength")
        return f"is longer than {int(limit)} characters" if limit is not None and len(value) > limit else None
    if kind in {"integer", "number"}:
        if "minimum" in schema and value < schema["minimum"]:
            return "is below its minimum"
        if "maximum" in schema and value > schema["maximum"]:
            return "is above its maximum"
    return None


def _has_type(kind: str, value: Any) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, float) and (kind == "number" or value.is_integer())


def sample_params(
    declared: dict[str, Any],
    next_draw: Callable[[], int],
    fixed: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Draw parameters uniformly from their domains, one draw each, in name order; `fixed` ones are given."""
    given = fixed or {}
    return {
        name: given[name] if name in given else _sample_param(declared[name], next_draw())
        for name in sorted(declared)
    }


MAX_TRIALS = 64
_MAX_INTEGERS = 16


def list_trials(declared: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the combinations of values of the parameters with few values, at most `MAX_TRIALS`.

    In name order, a parameter is left out if it has no short list of values, or if the combinations would
    become too many.
    """
    trials: list[dict[str, Any]] = [{}]
    for name in sorted(declared):
        values = _list_values(declared[name])
        if values and len(trials) * len(values) <= MAX_TRIALS:
            trials = [{**trial, name: value} for trial in trials for value in values]
    return trials


def _list_values(schema: dict[str, Any]) -> list[Any]:
    if "enum" in schema:
        return [*dict.fromkeys(schema["enum"])]
    if schema["type"] == "boolean":
        return [False, True]
    if schema["type"] == "integer" and schema["maximum"] - schema["minimum"] < _MAX_INTEGERS:
        return [float(value) for value in range(int(schema["minimum"]), int(schema["maximum"]) + 1)]
    return []


def _sample_param(schema: dict[str, Any], value: int) -> Any:
    if "enum" in schema:
        return schema["enum"][choose(value, len(schema["enum"]))]
    match schema["type"]:
        case "boolean":
            return choose(value, 2) == 1
        case "string":
            return ""
        case "integer":
            low, high = int(schema["minimum"]), int(schema["maximum"])
            return float(low + choose(value, high - low + 1))
        case _:
            return require_finite(
                schema["minimum"] + to_unit_interval(value) * (schema["maximum"] - schema["minimum"]),
            )


ONGOING = {"kind": "ongoing"}


def deal(state: ReferenceState) -> ReferenceState:
    """Draw the hidden truths of a run, write them to the state of the document, and return it."""
    for entry in state.rules.deals:
        cause = f"deal:{entry['id']}"
        drawn = choose(draw(state.seed, stream_key(cause), 0, 0), len(entry["values"]))
        effect = {"op": "set", "path": entry["path"], "value": entry["values"][drawn]}
        apply_effects(state, [effect], {}, cause, CallTrace())
    return state


POLICY_STREAM = "policy"
_POLICY_KEY = stream_key(POLICY_STREAM)
# Number of parameter draws before an action counts as not legal.
PARAM_TRIES = 8


Choice = tuple[dict[str, Any], dict[str, Any]]
"""Legal action with its drawn parameters."""


def act(state: ReferenceState, action_id: str, params: Any) -> dict[str, Any]:
    """Perform an action in the turn.

    Returns:
        An `ActResult`: accepted with its changes, or rejected with reasons and without changes.

    Raises:
        EngineError: `UNKNOWN_ACTION`, `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
    """
    return _run_atomically(state, lambda record: _act(state, action_id, params, record))


def _act(state: ReferenceState, action_id: str, params: Any, record: CallTrace) -> dict[str, Any]:
    index = next((i for i, action in enumerate(state.rules.actions) if action["id"] == action_id), None)
    if index is None:
        raise EngineError("UNKNOWN_ACTION", f"the scenario has no action '{action_id[:64]}'")
    _apply_due_effects(state, record)
    reasons = _try_action(state, index, params, record)
    return _build_result(reasons, record)


def _build_result(reasons: list[dict[str, str]], record: CallTrace) -> dict[str, Any]:
    return {
        "accepted": not reasons,
        "reasons": reasons,
        "changes": record.changes,
        "log": record.log,
        "errors": record.errors,
    }


def _try_action(state: ReferenceState, index: int, params: Any, record: CallTrace) -> list[dict[str, str]]:
    action = state.rules.actions[index]
    rule = f"/actions/{index}"
    problems = find_parameter_problems(action["params"], params)
    if problems:
        return [
            {"code": "ILLEGAL_PARAM", "rule": f"{rule}/params", "message": problem} for problem in problems
        ]
    action = state.rules.get_variant(index, params)
    try:
        if not is_satisfied(state, action["preconditions"], params, record):
            message = f"the preconditions of '{action['id']}' do not hold"
            return [{"code": "PRECONDITION_FAILED", "rule": f"{rule}/preconditions", "message": message}]
    except EngineError as error:
        return [record.record_failure(error, f"{rule}/preconditions")]
    failure = apply_rule(state, action, rule, f"action:{action['id']}", record, params)
    return [failure] if failure else []


def narrate(state: ReferenceState, changes: Any) -> dict[str, Any]:
    """Apply the narrator's changes, a list of `{op, path, value?}`, atomically.

    Returns:
        An `ActResult`: accepted with its changes, or rejected with reasons and without changes.

    Raises:
        EngineError: `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
    """
    return _run_atomically(state, lambda record: _narrate(state, changes, record))


def _narrate(state: ReferenceState, changes: Any, record: CallTrace) -> dict[str, Any]:
    _apply_due_effects(state, record)
    reasons = state.rules.narrator_permissions.find_violations(changes)
    if not reasons:
        failure = try_effects(state, changes, {}, "narrator", record, "/state_changes")
        reasons = [failure] if failure else []
    return _build_result(reasons, record)


def step(state: ReferenceState) -> dict[str, Any]:
    """Finish the turn: random event, lasting events, decay, end conditions.

    Raises:
        EngineError: `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
    """
    return _run_atomically(state, lambda record: _step(state, record))


def _step(state: ReferenceState, record: CallTrace) -> dict[str, Any]:
    _apply_due_effects(state, record)
    status = find_ending(state, record) if state.rules.ends_early else ONGOING
    event = None
    if status["kind"] == "ongoing":
        event = select_event(state, record)
        _decay(state, record)
        status = find_ending(state, record)
    state.turn += 1
    state.opened = False
    state.rolls = {}
    state.status = status
    return {
        "turn": float(state.turn),
        "event": event,
        "changes": record.changes,
        "log": record.log,
        "draws": record.draws,
        "errors": record.errors,
        "status": status,
    }


def check_ongoing(state: ReferenceState) -> None:
    """Raise if the run has ended."""
    if state.status["kind"] != "ongoing":
        raise EngineError("RUN_ENDED", "the run has ended; nothing more can happen in it")


def _run_atomically(state: ReferenceState, work: Callable[[CallTrace], dict[str, Any]]) -> dict[str, Any]:
    """Run a call atomically: restore the state if it fails."""
    check_ongoing(state)
    before = state.fork()
    try:
        return work(CallTrace())
    except EngineError:
        state.restore_from(before)
        raise


def _apply_due_effects(state: ReferenceState, record: CallTrace) -> None:
    """Open the turn if it is not open: apply the scheduled effects that are due."""
    if state.opened:
        return
    state.opened = True
    now = state.turn + 1
    due = state.unschedule(lambda entry: entry["due"] <= now)
    for entry in sorted(due, key=lambda entry: entry["due"]):
        try_effects(state, entry["effects"], {}, f"schedule:{entry['id']}", record, f"schedule:{entry['id']}")


def open_turn(state: ReferenceState, record: CallTrace) -> ReferenceState:
    """Return the state as it is after opening its turn; the same object if nothing is due."""
    if state.opened or not any(entry["due"] <= state.turn + 1 for entry in state.scheduled):
        return state
    fork, opening = state.fork(), CallTrace(steps=record.steps)
    _apply_due_effects(fork, opening)
    record.steps = opening.steps
    return fork


def _decay(state: ReferenceState, record: CallTrace) -> None:
    for text in sorted(state.rules.decay):
        effect = {"op": "dec", "path": text, "value": state.rules.decay[text]}
        try:
            apply_effects(state, [effect], {}, "decay", record)
        except EngineError as error:
            failure = EngineError(error.code, error.message)
            record.record_failure(failure, f"/negativity_budget/decay_per_turn/{escape_segment(text)}")


def find_ending(state: ReferenceState, record: CallTrace) -> dict[str, Any]:
    """Return the status by the first condition that holds: losses in order, then wins."""
    for kind, section, conditions in (
        ("lost", "loss_conditions", state.rules.losses),
        ("won", "win_conditions", state.rules.wins),
    ):
        for index, condition in enumerate(conditions):
            try:
                is_met = is_satisfied(state, condition["when"], {}, record)
            except EngineError as error:
                record.record_failure(error, f"/{section}/{index}/when")
                continue
            if is_met:
                return {"kind": kind, "condition": condition["id"], "message": condition.get("message")}
    return ONGOING


class PersonaDraws:
    """Random draws of a persona within a turn, in order."""

    def __init__(self, state: ReferenceState) -> None:
        self.state = state
        self.index = 0

    def next_draw(self) -> int:
        """Return the next draw."""
        value = draw(self.state.seed, _POLICY_KEY, self.state.turn + 1, self.index)
        self.index += 1
        return value


def legal_choices(state: ReferenceState, draws: PersonaDraws, record: CallTrace) -> list[Choice]:
    """Return the legal actions with drawn parameters, in document order.

    The state is not changed. If the preconditions of an action depend on its parameters, a few draws are
    tried; if none satisfies them, the action is not legal. A failing precondition is recorded as an error and
    counts as not legal.
    """
    state = open_turn(state, record)
    choices = []
    for index, action in enumerate(state.rules.actions):
        for _ in range(PARAM_TRIES if action["params"] else 1):
            params = sample_params(action["params"], draws.next_draw)
            if _is_legal(state, index, params, record):
                choices.append((action, params))
                break
    return choices


def _is_legal(state: ReferenceState, index: int, params: dict[str, Any], record: CallTrace) -> bool:
    try:
        action = state.rules.get_variant(index, params)
        return is_satisfied(state, action["preconditions"], params, record)
    except EngineError as error:
        record.record_failure(error, f"/actions/{index}/preconditions")
        return False


FACES = 20
MAX_DIFFICULTY = 30
_MEMBERS = frozenset({"kind", "target", "difficulty"})
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")


def roll(state: ReferenceState, request: Any) -> dict[str, Any]:
    """Roll in the current turn: `{kind, target?, difficulty}`.

    Returns:
        A `RollResult`, including its draw.

    Raises:
        EngineError: `ROLL_INVALID`, `RUN_ENDED`, or `STATE_LIMIT` after too many rolls in the turn.
    """
    check_ongoing(state)
    kind, target, difficulty = _parse_roll(request)
    if sum(state.rolls.values()) >= MAX_ROLLS:
        raise EngineError("STATE_LIMIT", f"more than {MAX_ROLLS} rolls in one turn")
    stream = f"roll:{kind}:{target or ''}"
    turn, index = state.turn + 1, state.rolls.get(stream, 0)
    value = draw(state.seed, stream_key(stream), turn, index)
    state.rolls = {**state.rolls, stream: index + 1}
    face = choose(value, FACES) + 1
    return {
        "kind": kind,
        "target": target,
        "difficulty": difficulty,
        "roll": float(face),
        "success": face >= difficulty,
        "draw": {
            "stream": stream,
            "turn": float(turn),
            "index": float(index),
            "value": f"{value:016x}",
        },
    }


def _parse_roll(request: Any) -> tuple[str, str | None, float]:
    if not isinstance(request, dict) or not request.keys() <= _MEMBERS:
        raise _roll_error("a roll is an object of kind, target and difficulty")
    kind: Any = request.get("kind")
    target: Any = request.get("target")
    difficulty: Any = request.get("difficulty")
    if not _is_id(kind):
        raise _roll_error("the kind of a roll is an id, such as a word without spaces")
    if target is not None and not _is_id(target):
        raise _roll_error("the target of a roll is an id, or absent")
    is_integer = isinstance(difficulty, float) and difficulty.is_integer()
    if not is_integer or not 1 <= difficulty <= MAX_DIFFICULTY:
        raise _roll_error(f"the difficulty of a roll is an integer, 1 to {MAX_DIFFICULTY}")
    return kind, target, difficulty


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _roll_error(message: str) -> EngineError:
    return EngineError("ROLL_INVALID", message)
