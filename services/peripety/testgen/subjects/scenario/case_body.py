"""Body of a scenario test: parsed from JSON, played turn by turn, checked, and searched for tautologies."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.rule_text import format_literal
from peripety.errors import Finding, PeripetyError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


MAX_STEPS = 100
MAX_ACTIONS = 16
_NULL_TEXTS = frozenset({"", "null", "none"})

BODY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "The turns to play from the beginning of the scenario, with expectations.",
    "properties": {
        "seed": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": 2**53 - 1,
            "description": "Seed of random events; null for the scenario's own.",
        },
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "description": "One turn.",
                "properties": {
                    "actions": {
                        "type": "array",
                        "description": "The actions of the turn, in order; may be empty.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "action_id": {"type": "string"},
                                "params": {
                                    "type": ["string", "object", "null"],
                                    "description": "A JSON object, or its text: a value for each parameter.",
                                },
                            },
                            "required": ["action_id", "params"],
                            "additionalProperties": False,
                        },
                    },
                    "accepted": {
                        "type": ["boolean", "null"],
                        "description": "True if all actions must be accepted, false if rejected; or null.",
                    },
                    "expect": {
                        "type": ["string", "object", "null"],
                        "description": "JSONLogic, or its text, that must hold after the turn. It sees state,"
                        " turn, status ('ongoing', 'won' or 'lost'), ending and event (an id, or null).",
                    },
                },
                "required": ["actions", "accepted", "expect"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["seed", "steps"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class PlayedAction:
    """An action and its parameters."""

    action_id: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BodyStep:
    """One turn.

    Attributes:
        actions: the actions, in order.
        accepted: whether all of them must be accepted, or rejected; None for no expectation.
        expect: the condition after the turn, as JSONLogic; None for none.
        rule: the same, compiled; its value is a boolean.
    """

    actions: tuple[PlayedAction, ...]
    accepted: bool | None = None
    expect: Any = None
    rule: engine.CompiledRule | None = None


@dataclass(frozen=True, slots=True)
class ScenarioBody:
    """A parsed test: turns, and a seed, None for that of the scenario."""

    seed: int | None
    steps: tuple[BodyStep, ...]


def parse_body(body: Mapping[str, Any]) -> ScenarioBody:
    """Parse a body.

    Raises:
        PeripetyError: a text is not JSON, or not JSONLogic within the engine's limits.
    """
    seed = body.get("seed")
    return ScenarioBody(
        int(seed) if seed is not None else None,
        tuple(map(_parse_step, body.get("steps") or ())),
    )


def _parse_step(step: Mapping[str, Any]) -> BodyStep:
    actions = tuple(
        PlayedAction(str(action["action_id"]), _parse_value(action.get("params")) or {})
        for action in step.get("actions") or ()
    )
    expect = _parse_value(step.get("expect"))
    rule = None if expect is None else engine.compile_rule({"!!": [expect]})
    return BodyStep(actions, step.get("accepted"), expect, rule)


def _parse_value(given: Any) -> Any:
    """Return a JSON value, which may be encoded as text; None for null in any form."""
    if not isinstance(given, str):
        return given
    if given.strip().lower() in _NULL_TEXTS:
        return None
    try:
        return engine.parse(given)
    except SpecError as error:
        raise PeripetyError(f"is not JSON: {error.findings[0].message}", code="NOT_JSON") from None


NOT_EXECUTABLE_CODES = frozenset({"UNKNOWN_ACTION", "RUN_ENDED", "EXPECTATION_INVALID", "LIMIT"})
"""Codes of findings that mean that a test is not executable."""

_MAX_SHOWN_CHANGES = 12


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One played turn.

    Attributes:
        acted: the results of the actions, in order.
        stepped: the result of the world step.
        state: the current state of the run.
        problem: the first unmet expectation; None if all are met.
    """

    acted: tuple[engine.ActResult, ...]
    stepped: engine.StepResult
    state: engine.State
    problem: Finding | None

    @property
    def changes(self) -> tuple[engine.Change, ...]:
        """All changes of the turn, in order."""
        return (*(change for result in self.acted for change in result.changes), *self.stepped.changes)


@dataclass
class PlayResult:
    """The result of playing a test.

    Attributes:
        findings: the reasons for a failure; `path` points into its body.
        observed: a line for each turn.
        covered: the covered parts, as kind and id.
        trace: a digest of everything observable.
    """

    findings: list[Finding] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)
    covered: set[tuple[str, str]] = field(default_factory=set)
    trace: str = ""


def play_turns(program: engine.Program, body: ScenarioBody) -> Iterator[PlayedTurn]:
    """Play a test to its end, or to the first turn with an unmet expectation.

    Raises:
        PeripetyError: a turn cannot be played. Turns after the end of the run raise `RUN_ENDED`, unknown
            actions raise `UNKNOWN_ACTION`.
    """
    state = program.new_state(body.seed)
    for index, step in enumerate(body.steps):
        acted = tuple(program.act(state, action.action_id, action.params) for action in step.actions)
        stepped = program.step(state)
        problem = _find_problem(step, f"/steps/{index}", acted, stepped, state)
        yield PlayedTurn(acted, stepped, state, problem)
        if problem is not None:
            return


def has_failure(program: engine.Program, body: ScenarioBody) -> bool:
    """Return True if a test fails on a scenario, or cannot be played on it."""
    try:
        return any(turn.problem is not None for turn in play_turns(program, body))
    except PeripetyError:
        return True


def play(program: engine.Program, body: ScenarioBody) -> PlayResult:
    """Play a test, and return the complete result."""
    told, digest = PlayResult(), sha256()
    try:
        for index, turn in enumerate(play_turns(program, body)):
            digest.update(f"{turn.acted}{turn.stepped}{turn.state.hash()}".encode())
            told.observed.append(_turn_line(index, turn, body.steps[index]))
            told.covered |= {*_covered_parts(turn, body.steps[index])}
            if turn.problem is not None:
                told.findings.append(turn.problem)
    except PeripetyError as error:
        code = error.code if error.code in NOT_EXECUTABLE_CODES else "LIMIT"
        told.findings.append(Finding(code, f"/steps/{len(told.observed)}", error.message))
    told.trace = digest.hexdigest()
    return told


def _find_problem(
    step: BodyStep,
    path: str,
    acted: tuple[engine.ActResult, ...],
    stepped: engine.StepResult,
    state: engine.State,
) -> Finding | None:
    if step.accepted is not None:
        for index, result in enumerate(acted):
            if result.accepted is not step.accepted:
                reason = result.reasons[0].message if result.reasons else "no reason against it"
                message = f"the action is {'accepted' if result.accepted else 'rejected'}: {reason}"
                return Finding("EXPECTATION_NOT_MET", f"{path}/actions/{index}", message)
    if step.rule is None:
        return None
    status = stepped.status
    data = {
        "state": state.tree(),
        "turn": state.turn,
        "status": status.kind,
        "ending": status.condition,
        "event": stepped.event,
    }
    try:
        holds = step.rule.evaluate(data)
    except PeripetyError as error:
        return Finding("EXPECTATION_INVALID", f"{path}/expect", f"cannot be evaluated: {error.message}")
    if holds:
        return None
    return Finding("EXPECTATION_NOT_MET", f"{path}/expect", "does not hold after the turn")


def _covered_parts(turn: PlayedTurn, step: BodyStep) -> Iterator[tuple[str, str]]:
    for action, result in zip(step.actions, turn.acted, strict=True):
        yield ("action" if result.accepted else "rejection"), action.action_id
    if turn.stepped.event is not None:
        yield "event", turn.stepped.event
    if turn.stepped.status.condition is not None:
        yield "ending", turn.stepped.status.condition
    for change in turn.changes:
        kind, _, name = change.cause.partition(":")
        if kind in {"schedule", "decay"}:
            yield kind, name or "decay"


def _turn_line(index: int, turn: PlayedTurn, step: BodyStep) -> str:
    did = [
        f"{action.action_id} {'accepted' if result.accepted else f'rejected ({result.reasons[0].code})'}"
        for action, result in zip(step.actions, turn.acted, strict=True)
    ]
    if turn.stepped.event is not None:
        did.append(f"event {turn.stepped.event}")
    after = {change.path: change.after for change in turn.changes}
    shown = [f"{path} = {format_literal(value)}" for path, value in [*after.items()][:_MAX_SHOWN_CHANGES]]
    status = turn.stepped.status
    ending = f" by {status.condition}" if status.condition else ""
    return "; ".join(
        [f"turn {index + 1}: {', '.join(did) or 'nothing done'}", *shown, f"{status.kind}{ending}"],
    )


# Values of all types for the variables of an expectation.
_SAMPLE_VALUES = (
    None,
    False,
    True,
    -1_000_003,
    -1,
    0,
    0.5,
    1,
    7,
    1_000_003,
    "",
    "a",
    "ongoing",
    "won",
    "lost",
)


def is_tautology(expect: Any) -> bool:
    """Return True if an expectation holds for any state, by trying values for its variables.

    Each value is used for all variables at once, and for each variable alone with the others missing. An
    expectation that holds in all cases depends on no variable. A case that cannot be evaluated counts as not
    holding.
    """
    variables = sorted(_variable_paths(expect))
    if not variables:
        return _holds(expect, {})
    for value in _SAMPLE_VALUES:
        if not _holds(expect, _nest_values(dict.fromkeys(variables, value))):
            return False
        if any(not _holds(expect, _nest_values({name: value})) for name in variables):
            return False
    return True


def _holds(expect: Any, data: Any) -> bool:
    try:
        return bool(engine.evaluate({"!!": [expect]}, data))
    except PeripetyError:
        return False


def _variable_paths(part: Any) -> set[str]:
    if isinstance(part, list):
        return set().union(*map(_variable_paths, part)) if part else set()
    if not isinstance(part, dict):
        return set()
    found: set[str] = set()
    for name, operands in part.items():
        if name == "var":
            path = operands[0] if isinstance(operands, list) and operands else operands
            if isinstance(path, str):
                found.add(path)
        found |= _variable_paths(operands)
    return found


def _nest_values(values: dict[str, Any]) -> Any:
    """Return data with a value at each path; if one path is a prefix of another, the longer one wins."""
    data: dict[str, Any] = {}
    for path, value in values.items():
        place = data
        *way, last = path.split(".")
        for key in way:
            inner = place.get(key)
            place[key] = place = inner if isinstance(inner, dict) else {}
        place[last] = value
    return data
