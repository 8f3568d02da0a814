"""Phases of a turn.

Due schedules; actions; the narrator's changes; one random event and lasting ones; decay; end conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure import params as legal
from peripety.sim._pure.effects import Record, apply_effects
from peripety.sim._pure.events import happen
from peripety.sim._pure.execution import apply, apply_rule, escaped, holds
from peripety.sim._pure.rng import draw, stream_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim._pure.state import State

__all__ = [
    "PARAM_TRIES",
    "POLICY_STREAM",
    "Choice",
    "PolicyDraws",
    "act",
    "as_opened",
    "check_ongoing",
    "legal_choices",
    "narrate",
    "step",
]

POLICY_STREAM = "policy"
_POLICY_KEY = stream_key(POLICY_STREAM)
# Number of parameter draws before an action counts as not legal.
PARAM_TRIES = 8


Choice = tuple[dict[str, Any], dict[str, Any]]
"""Legal action with its drawn parameters."""


def act(state: State, action_id: str, params: Any) -> dict[str, Any]:
    """Perform an action in the turn.

    Returns:
        An `ActResult`: accepted with its changes, or rejected with reasons and without changes.

    Raises:
        CoreError: `UNKNOWN_ACTION`, `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
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
        if not holds(state, action["preconditions"], params, record):
            message = f"the preconditions of '{action['id']}' do not hold"
            return [{"code": "PRECONDITION_FAILED", "rule": f"{rule}/preconditions", "message": message}]
    except CoreError as error:
        return [record.fail(error, f"{rule}/preconditions")]
    failure = apply_rule(state, action, rule, f"action:{action['id']}", record, params)
    return [failure] if failure else []


def narrate(state: State, changes: Any) -> dict[str, Any]:
    """Apply the narrator's changes, a list of `{op, path, value?}`, atomically.

    Returns:
        An `ActResult`: accepted with its changes, or rejected with reasons and without changes.

    Raises:
        CoreError: `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
    """
    return _whole(state, lambda record: _narrate(state, changes, record))


def _narrate(state: State, changes: Any, record: Record) -> dict[str, Any]:
    _open(state, record)
    reasons = state.rules.scope.objections(changes)
    if not reasons:
        failure = apply(state, changes, {}, "narrator", record, "/state_changes")
        reasons = [failure] if failure else []
    return _decided(reasons, record)


def step(state: State) -> dict[str, Any]:
    """Finish the turn: random event, lasting events, decay, end conditions.

    Raises:
        CoreError: `RUN_ENDED`, `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
    """
    return _whole(state, lambda record: _step(state, record))


def _step(state: State, record: Record) -> dict[str, Any]:
    _open(state, record)
    event = happen(state, record)
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
    """Raise if the run has ended."""
    if state.status["kind"] != "ongoing":
        raise CoreError("RUN_ENDED", "the run has ended; nothing more can happen in it")


def _whole(state: State, work: Callable[[Record], dict[str, Any]]) -> dict[str, Any]:
    """Run a call atomically: restore the state if it fails."""
    check_ongoing(state)
    before = state.fork()
    try:
        return work(Record())
    except CoreError:
        state.become(before)
        raise


def _open(state: State, record: Record) -> None:
    """Open the turn if it is not open: apply the scheduled effects that are due."""
    if state.opened:
        return
    state.opened = True
    now = state.turn + 1
    due = state.unschedule(lambda entry: entry["due"] <= now)
    for entry in sorted(due, key=lambda entry: entry["due"]):
        apply(state, entry["effects"], {}, f"schedule:{entry['id']}", record, f"schedule:{entry['id']}")


def as_opened(state: State, record: Record) -> State:
    """Return the state as it is after opening its turn; the same object if nothing is due."""
    if state.opened or not any(entry["due"] <= state.turn + 1 for entry in state.scheduled):
        return state
    fork, opening = state.fork(), Record(steps=record.steps)
    _open(fork, opening)
    record.steps = opening.steps
    return fork


def _decay(state: State, record: Record) -> None:
    for text in sorted(state.rules.decay):
        effect = {"op": "dec", "path": text, "value": state.rules.decay[text]}
        try:
            apply_effects(state, [effect], {}, "decay", record)
        except CoreError as error:
            failure = CoreError(error.code, error.message)
            record.fail(failure, f"/negativity_budget/decay_per_turn/{escaped(text)}")


def _judge(state: State, record: Record) -> dict[str, Any]:
    """Return the status by the first condition that holds: losses in order, then wins."""
    for kind, section, conditions in (
        ("lost", "loss_conditions", state.rules.losses),
        ("won", "win_conditions", state.rules.wins),
    ):
        for index, condition in enumerate(conditions):
            try:
                is_met = holds(state, condition["when"], {}, record)
            except CoreError as error:
                record.fail(error, f"/{section}/{index}/when")
                continue
            if is_met:
                return {"kind": kind, "condition": condition["id"], "message": condition.get("message")}
    return {"kind": "ongoing"}


class PolicyDraws:
    """Random draws of a persona within a turn, in order."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.index = 0

    def next(self) -> int:
        """Return the next draw."""
        value = draw(self.state.seed, _POLICY_KEY, self.state.turn + 1, self.index)
        self.index += 1
        return value


def legal_choices(state: State, draws: PolicyDraws, record: Record) -> list[Choice]:
    """Return the legal actions with drawn parameters, in document order.

    The state is not changed. If the preconditions of an action depend on its parameters, a few draws are
    tried; if none satisfies them, the action is not legal. A failing precondition is recorded as an error and
    counts as not legal.
    """
    state = as_opened(state, record)
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
        return holds(state, state.rules.actions[index]["preconditions"], params, record)
    except CoreError as error:
        record.fail(error, f"/actions/{index}/preconditions")
        return False
