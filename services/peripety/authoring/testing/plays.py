"""Generation of plays for a scenario, simplest first, from the document alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import sim
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Call", "Play", "calls_of", "plays_of"]

_WALKS = 36
_WALK_TURNS = 16
_MOST_TURNS = 60
_REPEATS = 12
_CARELESS = 5
"""One in this many steps of a random walk ignores which actions are legal."""

_STREAM = "tests"
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class Call:
    """Action call with parameters.

    Attributes:
        action_id: the action.
        params: its parameters.
        is_border: True if a parameter is at a bound, or beyond it.
    """

    action_id: str
    params: Mapping[str, Any]
    is_border: bool = False

    def __str__(self) -> str:
        """Return it as readable text."""
        if not self.params:
            return self.action_id
        return f"{self.action_id}({', '.join(f'{name}={value!r}' for name, value in self.params.items())})"


Turns: TypeAlias = "tuple[Call | None, ...]"


@dataclass(frozen=True)
class Play:
    """Sequence of turns.

    Attributes:
        turns: an action for each turn, or None to wait.
        seed: the seed; None for the seed of the scenario.
    """

    turns: Turns
    seed: int | None = None

    def __str__(self) -> str:
        """Return it as readable text."""
        told = [
            f"{name} x{count}" if (count := len([*same])) > 1 else name
            for name, same in groupby("wait" if call is None else str(call) for call in self.turns)
        ]
        return f"{'' if self.seed is None else f'seed {self.seed}: '}{', '.join(told)}"


def plays_of(program: sim.Program) -> Iterator[Play]:
    """Yield plays: actions at the bounds of their parameters, repetitions, waiting, pairs, random walks."""
    actions = program.spec["actions"]
    calls = {action["id"]: calls_of(action) for action in actions}
    usual = [of[0] for of in calls.values()]
    yield Play((None,))
    for of in calls.values():
        yield from (Play((call,)) for call in of)
    for call in usual:
        yield Play((call,) * _REPEATS)
    yield Play((None,) * _MOST_TURNS)
    for first in usual:
        yield from (Play((first, second)) for second in usual if second is not first)
    for number in range(_WALKS):
        yield _walk(program, calls, number)


def calls_of(action: Mapping[str, Any]) -> list[Call]:
    """Return calls of an action: usual parameters, then each one at its bounds, beyond them, and missing."""
    usual = {name: _values(param)[0] for name, param in action["params"].items()}
    found = [Call(action["id"], usual)]
    for name, param in action["params"].items():
        found += (Call(action["id"], usual | {name: value}, is_border=True) for value in _values(param)[1:])
        without = {other: value for other, value in usual.items() if other != name}
        found.append(Call(action["id"], without, is_border=True))
    if usual:
        found.append(Call(action["id"], usual | {"no_such_parameter": 1}, is_border=True))
    return found


def _values(param: Mapping[str, Any]) -> list[Any]:
    """Return a usual value, the bounds, and the nearest values beyond them."""
    if param.get("enum"):
        return [*param["enum"], "no such value" if param["type"] == "string" else max(param["enum"]) + 1]
    match param["type"]:
        case "boolean":
            return [True, False, 1]
        case "string":
            longest: int | None = param.get("maxLength")
            if longest is None or longest > _LONGEST_TEXT:
                return ["a", ""]
            return ["a", "", "a" * longest, "a" * (longest + 1)]
    least, most = param.get("minimum"), param.get("maximum")
    middle = least if most is None else most if least is None else (least + most) // 2
    values = [1 if middle is None else middle]
    values += [] if least is None else [least, least - 1]
    values += [] if most is None else [most, most + 1]
    return [*dict.fromkeys(values)]


def _walk(program: sim.Program, calls: Mapping[str, Sequence[Call]], number: int) -> Play:
    """Return a random walk over mostly legal actions; every third one uses the seed of the scenario."""
    seed = None if number % 3 == 0 else number
    state = program.new_state(seed)
    names = [*calls]
    turns: list[Call | None] = []
    for turn in range(_WALK_TURNS):
        drawn = sim.draw(number, _STREAM, turn, 0) >> 11
        legal = program.legal_actions(state)
        open_to = names if drawn % _CARELESS == 0 or not legal else [*legal]
        of = calls[open_to[(drawn // _CARELESS) % len(open_to)]]
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
