"""Engine traces: generated plays of a scenario, their results turn by turn, and mutants of the document.

Plays are generated from the document alone, simplest first. Mutants are rebuilt from their descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import engine
from peripety.core.mutation_testing import REMOVED, apply_edit
from peripety.engine.rule_text import format_literal
from peripety.engine.schema_validation import parse_pointer
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_WALKS = 36
_WALK_TURNS = 16
_MAX_TURNS = 60
_REPEATS = 12
_CARELESS_INTERVAL = 5
"""One in this many steps of a random walk ignores which actions are legal."""

_STREAM = "tests"
_MAX_TEXT = 200


@dataclass(frozen=True)
class PlayCall:
    """Action call with parameters.

    Attributes:
        action_id: the action.
        params: its parameters.
        is_boundary: True if a parameter is at a bound, or beyond it.
    """

    action_id: str
    params: Mapping[str, Any]
    is_boundary: bool = False

    def __str__(self) -> str:
        """Return it as readable text."""
        if not self.params:
            return self.action_id
        given = (f"{name}={format_literal(value)}" for name, value in self.params.items())
        return f"{self.action_id}({', '.join(given)})"


PlayedTurns: TypeAlias = "tuple[PlayCall | None, ...]"


@dataclass(frozen=True)
class Play:
    """Sequence of turns.

    Attributes:
        turns: an action for each turn, or None to wait.
        seed: the seed; None for the seed of the scenario.
    """

    turns: PlayedTurns
    seed: int | None = None

    def __str__(self) -> str:
        """Return it as readable text."""
        told = [
            f"{name} x{count}" if (count := len([*same])) > 1 else name
            for name, same in groupby("wait" if call is None else str(call) for call in self.turns)
        ]
        return f"{'' if self.seed is None else f'seed {self.seed}: '}{', '.join(told)}"


def generate_plays(program: engine.Program) -> Iterator[Play]:
    """Yield plays: actions at the bounds of their parameters, repetitions, waiting, pairs, random walks."""
    actions = program.spec["actions"]
    calls = {action["id"]: boundary_calls(action) for action in actions}
    usual = [of[0] for of in calls.values()]
    yield Play((None,))
    for of in calls.values():
        yield from (Play((call,)) for call in of)
    for call in usual:
        yield Play((call,) * _REPEATS)
    yield Play((None,) * _MAX_TURNS)
    for first in usual:
        yield from (Play((first, second)) for second in usual if second is not first)
    for number in range(_WALKS):
        yield _random_walk(program, calls, number)


def boundary_calls(action: Mapping[str, Any]) -> list[PlayCall]:
    """Return calls of an action: usual parameters, then each one at its bounds, beyond them, and missing."""
    usual = {name: _boundary_values(param)[0] for name, param in action["params"].items()}
    found = [PlayCall(action["id"], usual)]
    for name, param in action["params"].items():
        found += (
            PlayCall(action["id"], usual | {name: value}, is_boundary=True)
            for value in _boundary_values(param)[1:]
        )
        without = {other: value for other, value in usual.items() if other != name}
        found.append(PlayCall(action["id"], without, is_boundary=True))
    if usual:
        found.append(PlayCall(action["id"], usual | {"no_such_parameter": 1}, is_boundary=True))
    return found


def _boundary_values(param: Mapping[str, Any]) -> list[Any]:
    """Return a usual value, the bounds, and the nearest values beyond them."""
    if param.get("enum"):
        return [*param["enum"], "no such value" if param["type"] == "string" else max(param["enum"]) + 1]
    match param["type"]:
        case "boolean":
            return [True, False, 1]
        case "string":
            longest: int | None = param.get("maxLength")
            if longest is None or longest > _MAX_TEXT:
                return ["a", ""]
            return ["a", "", "a" * longest, "a" * (longest + 1)]
    least, most = param.get("minimum"), param.get("maximum")
    middle = least if most is None else most if least is None else (least + most) // 2
    values = [1 if middle is None else middle]
    values += [] if least is None else [least, least - 1]
    values += [] if most is None else [most, most + 1]
    return [*dict.fromkeys(values)]


def _random_walk(program: engine.Program, calls: Mapping[str, Sequence[PlayCall]], number: int) -> Play:
    """Return a random walk over mostly legal actions; every third one uses the seed of the scenario."""
    seed = None if number % 3 == 0 else number
    state = program.new_state(seed)
    names = [*calls]
    turns: list[PlayCall | None] = []
    for turn in range(_WALK_TURNS):
        drawn = engine.draw(number, _STREAM, turn, 0) >> 11
        legal = program.legal_actions(state)
        open_to = names if drawn % _CARELESS_INTERVAL == 0 or not legal else [*legal]
        of = calls[open_to[(drawn // _CARELESS_INTERVAL) % len(open_to)]]
        # Every fourth walk sometimes waits.
        call = None if number % 4 == 1 and drawn % 3 == 1 else of[(drawn >> 20) % len(of)]
        turns.append(call)
        try:
            if call is not None:
                program.act(state, call.action_id, call.params)
            program.step(state)
        except PeripetyError:
            break
        if state.status.kind != "ongoing":
            break
    return Play(tuple(turns), seed)


_MISSING = object()


@dataclass(frozen=True)
class TracedTurn:
    """Result of one turn.

    Attributes:
        accepted: whether its action was accepted; None for a turn without an action.
        event_id: the id of the random event; None without one.
        status: `is_ongoing`, `won` or `lost`.
        ending_id: the id of the ending; None without one.
        changed: the changed variables, in order.
        labels: labels of its parts, such as `event a`.
        digest: hash of the state after it.
        tree: the state after it.
    """

    accepted: bool | None
    event_id: str | None
    status: str
    ending_id: str | None
    changed: tuple[str, ...]
    labels: frozenset[str]
    digest: str
    tree: Any

    @property
    def outcome(self) -> tuple[bool | None, str | None, str, str | None]:
        """Return its visible result without the state."""
        return self.accepted, self.event_id, self.status, self.ending_id

    def value(self, variable: str) -> Any:
        """Return the value of a variable."""
        part: Any = {"state": self.tree}
        for key in variable.split("."):
            part = part[int(key) if isinstance(part, list) else key]
        return part


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """First difference between two scenarios.

    Attributes:
        turn: the index of the first differing turn.
        variables: the differing variables; empty if the turn result itself differs.
    """

    turn: int
    variables: tuple[str, ...]


def trace(program: engine.Program, play: Play) -> tuple[TracedTurn, ...]:
    """Run a play until its end, the end of the run, or the first turn that fails."""
    turns: list[TracedTurn] = []
    state = program.new_state(play.seed)
    try:
        for call in play.turns:
            acted = None if call is None else program.act(state, call.action_id, call.params)
            stepped = program.step(state)
            turns.append(_trace_turn(state, None if call is None else call.action_id, acted, stepped))
            if stepped.status.kind != "ongoing":
                break
    except PeripetyError:
        pass  # The turns before the failure are valid.
    return tuple(turns)


def find_difference(
    turns: Sequence[TracedTurn],
    program: engine.Program,
    play: Play,
) -> TraceDifference | None:
    """Return the first difference on another scenario; None without one.

    Args:
        turns: the results on the first scenario.
        program: the other scenario.
        play: the play.
    """
    state = program.new_state(play.seed)
    for index, (turn, call) in enumerate(zip(turns, play.turns, strict=False)):
        try:
            acted = None if call is None else program.act(state, call.action_id, call.params)
            stepped = program.step(state)
        except PeripetyError:
            return TraceDifference(index, ())
        status = stepped.status
        outcome = (None if acted is None else acted.accepted, stepped.event, status.kind, status.condition)
        paths = (
            ()
            if state.hash() == turn.digest
            else tuple(_differing_variables(turn.tree, state.tree(), "state"))
        )
        if paths or outcome != turn.outcome:
            return TraceDifference(index, paths)
        if status.kind != "ongoing":
            break
    return None


def _trace_turn(
    state: engine.State,
    action_id: str | None,
    acted: engine.ActResult | None,
    stepped: engine.StepResult,
) -> TracedTurn:
    changes = (*(() if acted is None else acted.changes), *stepped.changes)
    tree = state.tree()
    shows = set()
    if acted is not None:
        shows.add(f"{'action' if acted.accepted else 'rejection'} {action_id}")
    if stepped.event is not None:
        shows.add(f"event {stepped.event}")
    if stepped.status.condition is not None:
        shows.add(f"ending {stepped.status.condition}")
    shows |= {f"schedule {name}" for change in changes if (name := _scheduled_name(change.cause))}
    names = dict.fromkeys(_path_to_variable(change.path) for change in changes)
    return TracedTurn(
        None if acted is None else acted.accepted,
        stepped.event,
        stepped.status.kind,
        stepped.status.condition,
        tuple(name for name in names if name and _is_scalar(tree, name)),
        frozenset(shows),
        state.hash(),
        tree,
    )


def _scheduled_name(cause: str) -> str:
    kind, _, name = cause.partition(":")
    return name if kind == "schedule" else ""


def _path_to_variable(path: str) -> str:
    """Return a path as a condition variable; empty if a key contains a dot."""
    keys = [*map(str, engine.parse_path(path))]
    return "" if any("." in key or not key for key in keys) else ".".join(keys)


def _is_scalar(tree: Any, name: str) -> bool:
    part: Any = {"state": tree}
    for key in name.split("."):
        if isinstance(part, dict):
            part = part.get(key, _MISSING)
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return False
    return isinstance(part, int | float | str | bool)


def _differing_variables(one: Any, other: Any, name: str) -> Iterator[str]:
    if isinstance(one, dict):
        others = other if isinstance(other, dict) else {}
        for key, value in one.items():
            if "." not in key and key:
                yield from _differing_variables(value, others.get(key, _MISSING), f"{name}.{key}")
    elif isinstance(one, list):
        for index, value in enumerate(one):
            same = other[index] if isinstance(other, list) and index < len(other) else _MISSING
            yield from _differing_variables(value, same, f"{name}.{index}")
    elif one is not None and one != other:
        yield name


_CUT = "…"
_RULE_PATH_LENGTH = 2
"""The path length of a whole rule: its section, and its index."""


def mutate_document(
    document: Mapping[str, Any],
    survivors: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each mutant with its description; mutants with an incomplete description are skipped.

    A replaced rule means a swap with the next rule.

    Args:
        document: the original.
        survivors: the description of each: `mutant`, `before`, `after`, and `path` unless its id contains it.
    """
    for survivor in survivors:
        try:
            yield survivor, _build_mutant(document, survivor)
        except (KeyError, IndexError, TypeError, ValueError):
            continue


def mutated_path(survivor: Mapping[str, Any]) -> str:
    """Return the JSON Pointer to the mutated part."""
    path = survivor.get("path")
    return str(survivor["mutant"]).partition(":")[2].rpartition(":")[0] if path is None else str(path)


def value_at(document: Any, path: str) -> Any:
    """Return the part at a JSON Pointer; raises KeyError, IndexError or ValueError if missing."""
    for key in parse_pointer(path):
        document = document[int(key) if isinstance(document, list) else key]
    return document


def describe_mutation(survivor: Mapping[str, Any]) -> str:
    """Return one sentence about the mutation."""
    after = survivor.get("after")
    if after is None:
        return f"Without {mutated_path(survivor)} it would fail."
    was, mutated = format_literal(survivor.get("before")), format_literal(after)
    return f"It would fail if {mutated_path(survivor)} were {mutated} instead of {was}."


def _build_mutant(document: Mapping[str, Any], survivor: Mapping[str, Any]) -> Mapping[str, Any]:
    keys = parse_pointer(mutated_path(survivor))
    place: list[str | int] = []
    part: Any = document
    for number, key in enumerate(keys):
        place.append(int(key) if isinstance(part, list) else key)
        part = part[place[-1]] if number + 1 < len(keys) else None
    after = survivor["after"]
    if after is None:
        return dict(apply_edit(document, tuple(place), REMOVED))
    if len(place) == _RULE_PATH_LENGTH and isinstance(place[1], int):
        return _swap_rules(document, str(place[0]), place[1])
    if isinstance(after, str) and after.endswith(_CUT):
        raise ValueError("only the beginning of it is known")
    return dict(apply_edit(document, tuple(place), after))


def _swap_rules(document: Mapping[str, Any], section: str, index: int) -> Mapping[str, Any]:
    rules = [*document[section]]
    rules[index], rules[index + 1] = rules[index + 1], rules[index]
    return {**document, section: rules}
