"""A turn, in its order.

Due schedules; actions; the narrator's own changes; one random event and those that last; decay; conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure import params as legal
from peripety.sim._pure.convert import truthy
from peripety.sim._pure.effects import Record, apply_effects
from peripety.sim._pure.logic import Evaluation
from peripety.sim._pure.paths import split_variable
from peripety.sim._pure.rng import draw, stream_key, unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim._pure.state import State

__all__ = [
    "EVENT_STREAM",
    "PARAM_TRIES",
    "POLICY_STREAM",
    "PolicyDraws",
    "act",
    "check_ongoing",
    "derive_names",
    "legal_choices",
    "narrate",
    "step",
]

EVENT_STREAM = "event"
POLICY_STREAM = "policy"
_EVENT_KEY = stream_key(EVENT_STREAM)
_POLICY_KEY = stream_key(POLICY_STREAM)
# How often parameters are drawn anew before an action counts as not legal.
PARAM_TRIES = 8


def act(state: State, action_id: str, params: Any) -> dict[str, Any]:
    """Take an action of the turn.

    Returns:
        An `ActResult`: accepted with its changes, or rejected with reasons and without any.

    Raises:
        CoreError: `UNKNOWN_ACTION`, `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; nothing of this call was
            applied.
    """
    return _whole(state, lambda record: _act(state, action_id, params, record))


def _act(state: State, action_id: str, params: Any, record: Record) -> dict[str, Any]:
    index = next((i for i, action in enumerate(state.rules.actions) if action["id"] == action_id), None)
    if index is None:
        raise CoreError("UNKNOWN_ACTION", f"the scenario has no action '{action_id[:64]}'")
    _open(state, record)
    reasons = _attempt(state, index, params, record)
    return _decided(reasons, record)


def _decided(reasons: list[dict[str, str]], record: Record) -> dict[str, Any]:
    return {
        "accepted": not reasons,
        "reasons": reasons,
        "changes": record.changes,
        "log": record.log,
        "errors": record.errors,
    }


def _attempt(state: State, index: int, params: Any, record: Record) -> list[dict[str, str]]:
    action = state.rules.actions[index]
    rule = f"/actions/{index}"
    problems = legal.problems(action["params"], params)
    if problems:
        return [
            {"code": "ILLEGAL_PARAM", "rule": f"{rule}/params", "message": problem} for problem in problems
        ]
    try:
        if not _holds(state, action["preconditions"], params, record):
            message = f"the preconditions of '{action['id']}' do not hold"
            return [{"code": "PRECONDITION_FAILED", "rule": f"{rule}/preconditions", "message": message}]
    except CoreError as error:
        return [record.fail(error, f"{rule}/preconditions")]
    failure = _apply_rule(state, action, rule, f"action:{action['id']}", record, params)
    return [failure] if failure else []


def narrate(state: State, changes: Any) -> dict[str, Any]:
    """Apply the narrator's own changes to the state, a list of `{op, path, value?}`, all or none.

    Returns:
        An `ActResult`: accepted with its changes, or rejected with reasons and without any.

    Raises:
        CoreError: `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; nothing of this call was applied.
    """
    return _whole(state, lambda record: _narrate(state, changes, record))


def _narrate(state: State, changes: Any, record: Record) -> dict[str, Any]:
    _open(state, record)
    reasons = state.rules.scope.objections(changes)
    if not reasons:
        failure = _apply(state, changes, {}, "narrator", record, "/state_changes")
        reasons = [failure] if failure else []
    return _decided(reasons, record)


def step(state: State) -> dict[str, Any]:
    """Finish the turn: the random event, what lasts, decay, and the conditions that end a run.

    Raises:
        CoreError: `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; nothing of this call was applied.
    """
    return _whole(state, lambda record: _step(state, record))


def _step(state: State, record: Record) -> dict[str, Any]:
    _open(state, record)
    event = _happen(state, record)
    _decay(state, record)
    status = _judge(state, record)
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


def check_ongoing(state: State) -> None:
    """Refuse to do anything in a run that has ended."""
    if state.status["kind"] != "ongoing":
        raise CoreError("RUN_ENDED", "the run has ended; nothing more can happen in it")


def _whole(state: State, work: Callable[[Record], dict[str, Any]]) -> dict[str, Any]:
    """Do something to a state wholly, or not at all."""
    check_ongoing(state)
    before = state.fork()
    try:
        return work(Record())
    except CoreError:
        state.become(before)
        raise


def _open(state: State, record: Record) -> None:
    """Start the turn, once: apply the scheduled effects that are due."""
    if state.opened:
        return
    state.opened = True
    now = state.turn + 1
    due = state.unschedule(lambda entry: entry["due"] <= now)
    for entry in sorted(due, key=lambda entry: entry["due"]):
        _apply(state, entry["effects"], {}, f"schedule:{entry['id']}", record, f"schedule:{entry['id']}")


def _as_opened(state: State, record: Record) -> State:
    """The state as it will be once its turn is opened; itself when nothing is due."""
    if state.opened or not any(entry["due"] <= state.turn + 1 for entry in state.scheduled):
        return state
    fork, opening = state.fork(), Record(steps=record.steps)
    _open(fork, opening)
    record.steps = opening.steps
    return fork


def _happen(state: State, record: Record) -> str | None:
    """At most one random event, then the effects of the events that still last."""
    now = state.turn + 1
    continuing = [entry for entry in state.lasting if entry["until"] >= now]
    fired = _draw_event(state, {entry["id"] for entry in continuing}, record)
    begun = _begin(state, fired, record) if fired is not None else None
    for entry in continuing:
        index = next(i for i, event in enumerate(state.rules.events) if event["id"] == entry["id"])
        _apply_event(state, index, record)
    state.lasting = [entry for entry in [*continuing, *([begun] if begun else [])] if entry["until"] > now]
    return None if fired is None else state.rules.events[fired]["id"]


def _draw_event(state: State, lasting: set[str], record: Record) -> int | None:
    eligible = [
        i
        for i, event in enumerate(state.rules.events)
        if event["id"] not in lasting and _may(state, i, record)
    ]
    if not eligible:
        return None
    total = 0.0
    for index in eligible:
        total += state.rules.events[index]["weight"]
    value = draw(state.seed, _EVENT_KEY, state.turn + 1, 0)
    record.draws.append(
        {"stream": EVENT_STREAM, "turn": float(state.turn + 1), "index": 0.0, "value": f"{value:016x}"}
    )
    threshold = unit(value) if total <= 1 else unit(value) * total
    cumulative = 0.0
    for index in eligible:
        cumulative += state.rules.events[index]["weight"]
        if threshold < cumulative:
            return index
    return None


def _may(state: State, index: int, record: Record) -> bool:
    """Whether an event's condition holds; one that fails to evaluate does not."""
    try:
        return _holds(state, state.rules.events[index]["when"], {}, record)
    except CoreError as error:
        record.fail(error, f"/random_events/{index}/when")
        return False


def _begin(state: State, index: int, record: Record) -> dict[str, Any] | None:
    """Let an event happen; the entry of one that goes on."""
    failure = _apply_event(state, index, record)
    last = state.turn + state.rules.event_turns[index]
    return None if failure else {"id": state.rules.events[index]["id"], "until": float(last)}


def _apply_event(state: State, index: int, record: Record) -> dict[str, str] | None:
    event = state.rules.events[index]
    return _apply_rule(state, event, f"/random_events/{index}", f"event:{event['id']}", record, {})


def _decay(state: State, record: Record) -> None:
    for text in sorted(state.rules.decay):
        effect = {"op": "dec", "path": text, "value": state.rules.decay[text]}
        try:
            apply_effects(state, [effect], {}, "decay", record)
        except CoreError as error:
            failure = CoreError(error.code, error.message)
            record.fail(failure, f"/negativity_budget/decay_per_turn/{_escaped(text)}")


def _judge(state: State, record: Record) -> dict[str, Any]:
    """The first condition that holds ends the run: losses in order, then wins."""
    for kind, section, conditions in (
        ("lost", "loss_conditions", state.rules.losses),
        ("won", "win_conditions", state.rules.wins),
    ):
        for index, condition in enumerate(conditions):
            try:
                holds = _holds(state, condition["when"], {}, record)
            except CoreError as error:
                record.fail(error, f"/{section}/{index}/when")
                continue
            if holds:
                return {"kind": kind, "condition": condition["id"], "message": condition.get("message")}
    return {"kind": "ongoing"}


class PolicyDraws:
    """The draws of a persona within a turn, in order."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.index = 0

    def next(self) -> int:
        """The next draw."""
        value = draw(self.state.seed, _POLICY_KEY, self.state.turn + 1, self.index)
        self.index += 1
        return value


def legal_choices(
    state: State, draws: PolicyDraws, record: Record
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The actions that could be taken now, each with parameters drawn for it, in the order of the document.

    The state is not touched. An action whose parameters matter to its preconditions gets a few draws; one
    that none of them suits counts as not legal. A precondition that fails is noted in the record: it is never
    read as true, and never passed over.
    """
    state = _as_opened(state, record)
    choices = []
    for index, action in enumerate(state.rules.actions):
        for _ in range(PARAM_TRIES if action["params"] else 1):
            params = legal.sample(action["params"], draws.next)
            if _is_legal(state, index, params, record):
                choices.append((action, params))
                break
    return choices


def _is_legal(state: State, index: int, params: dict[str, Any], record: Record) -> bool:
    try:
        return _holds(state, state.rules.actions[index]["preconditions"], params, record)
    except CoreError as error:
        record.fail(error, f"/actions/{index}/preconditions")
        return False


# --- rules ---


def _apply_rule(
    state: State, rule: dict[str, Any], place: str, cause: str, record: Record, params: dict[str, Any]
) -> dict[str, str] | None:
    """Derive, then apply the effects of an action or event; the failure, if it failed."""
    try:
        derives = _derive(state, rule.get("derives", {}), params, record)
    except CoreError as error:
        return record.fail(error, f"{place}/derives")
    return _apply(state, rule["effects"], derives, cause, record, f"{place}/effects")


def _apply(
    state: State, effects: list[Any], derives: dict[str, Any], cause: str, record: Record, place: str
) -> dict[str, str] | None:
    try:
        apply_effects(state, effects, derives, cause, record)
    except CoreError as error:
        return record.fail(error, place)
    return None


def _holds(state: State, condition: dict[str, Any], params: dict[str, Any], record: Record) -> bool:
    """Whether a condition holds; the empty one always does."""
    return truthy(_evaluate(condition, _root(state, params, {}), record))


def _derive(
    state: State, expressions: dict[str, Any], params: dict[str, Any], record: Record
) -> dict[str, Any]:
    """The derived values, each after those it reads, by name otherwise."""
    derives: dict[str, Any] = {}

    def visit(name: str) -> None:
        if name in derives:
            return
        for other in sorted(derive_names(expressions[name]) & expressions.keys()):
            visit(other)
        try:
            derives[name] = _evaluate(expressions[name], _root(state, params, derives), record)
        except CoreError as error:
            raise CoreError(error.code, error.message, f"/{_escaped(name)}") from None

    for name in sorted(expressions):
        visit(name)
    return derives


def _evaluate(logic: Any, data: dict[str, Any], record: Record) -> Any:
    """The value of an expression; the call pays for it, also when it fails."""
    run = Evaluation()
    try:
        return run.result(logic, data)
    finally:
        record.charge(run.spent)


def _escaped(name: str) -> str:
    """A key as a segment of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def derive_names(expression: Any) -> set[str]:
    """The derived values that an expression reads, or looks for."""
    if isinstance(expression, list):
        return {name for item in expression for name in derive_names(item)}
    if not isinstance(expression, dict):
        return set()
    names = {name for item in expression.values() for name in derive_names(item)}
    operand = expression.get("var")
    paths = [operand[0] if isinstance(operand, list) and operand else operand]
    for operator in ("missing", "missing_some"):
        paths += _texts_in(expression.get(operator))
    for path in paths:
        segments = split_variable(path) if isinstance(path, str) else ()
        if len(segments) > 1 and segments[0] == "derives":
            names.add(str(segments[1]))
    return names


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts_in(item)]
    return [value] if isinstance(value, str) else []


def _root(state: State, params: dict[str, Any], derives: dict[str, Any]) -> dict[str, Any]:
    return {
        "state": state.tree_value,
        "params": params,
        "derives": derives,
        "turn": float(state.turn + 1),
        "entities": state.rules.entities,
    }
