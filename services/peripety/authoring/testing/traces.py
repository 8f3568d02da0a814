"""Engine results of a play, turn by turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.authoring.testing.plays import Play

__all__ = ["Difference", "Turn", "difference", "traced"]

_MISSING = object()


@dataclass(frozen=True)
class Turn:
    """Result of one turn.

    Attributes:
        accepted: whether its action was accepted; None for a turn without an action.
        event: the id of the random event; None without one.
        status: `ongoing`, `won` or `lost`.
        ending: the id of the ending; None without one.
        changed: the changed variables, in order.
        shows: labels of its parts, such as `event a`.
        digest: hash of the state after it.
        tree: the state after it.
    """

    accepted: bool | None
    event: str | None
    status: str
    ending: str | None
    changed: tuple[str, ...]
    shows: frozenset[str]
    digest: str
    tree: Any

    @property
    def outcome(self) -> tuple[bool | None, str | None, str, str | None]:
        """Return its visible result without the state."""
        return self.accepted, self.event, self.status, self.ending

    def value(self, variable: str) -> Any:
        """Return the value of a variable."""
        part: Any = {"state": self.tree}
        for key in variable.split("."):
            part = part[int(key) if isinstance(part, list) else key]
        return part


@dataclass(frozen=True, slots=True)
class Difference:
    """First difference between two scenarios.

    Attributes:
        turn: the index of the first differing turn.
        variables: the differing variables; empty if the turn result itself differs.
    """

    turn: int
    variables: tuple[str, ...]


def traced(program: sim.Program, play: Play) -> tuple[Turn, ...]:
    """Run a play until its end, the end of the run, or the first turn that fails."""
    turns: list[Turn] = []
    state = program.new_state(play.seed)
    try:
        for call in play.turns:
            acted = None if call is None else program.act(state, call.action_id, call.params)
            stepped = program.step(state)
            turns.append(_turn(state, None if call is None else call.action_id, acted, stepped))
            if stepped.status.kind != "ongoing":
                break
    except PeripetyError:
        pass  # The turns before the failure are valid.
    return tuple(turns)


def difference(turns: Sequence[Turn], program: sim.Program, play: Play) -> Difference | None:
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
            return Difference(index, ())
        status = stepped.status
        outcome = (None if acted is None else acted.accepted, stepped.event, status.kind, status.condition)
        paths = () if state.hash() == turn.digest else tuple(_differing(turn.tree, state.tree(), "state"))
        if paths or outcome != turn.outcome:
            return Difference(index, paths)
        if status.kind != "ongoing":
            break
    return None


def _turn(
    state: sim.State, action_id: str | None, acted: sim.ActResult | None, stepped: sim.StepResult
) -> Turn:
    changes = (*(() if acted is None else acted.changes), *stepped.changes)
    tree = state.tree()
    shows = set()
    if acted is not None:
        shows.add(f"{'action' if acted.accepted else 'rejection'} {action_id}")
    if stepped.event is not None:
        shows.add(f"event {stepped.event}")
    if stepped.status.condition is not None:
        shows.add(f"ending {stepped.status.condition}")
    shows |= {f"schedule {name}" for change in changes if (name := _scheduled(change.cause))}
    names = dict.fromkeys(_variable(change.path) for change in changes)
    return Turn(
        None if acted is None else acted.accepted,
        stepped.event,
        stepped.status.kind,
        stepped.status.condition,
        tuple(name for name in names if name and _is_plain(tree, name)),
        frozenset(shows),
        state.hash(),
        tree,
    )


def _scheduled(cause: str) -> str:
    kind, _, name = cause.partition(":")
    return name if kind == "schedule" else ""


def _variable(path: str) -> str:
    """Return a path as a condition variable; empty if a key contains a dot."""
    keys = [*map(str, sim.parse_path(path))]
    return "" if any("." in key or not key for key in keys) else ".".join(keys)


def _is_plain(tree: Any, name: str) -> bool:
    part: Any = {"state": tree}
    for key in name.split("."):
        if isinstance(part, dict):
            part = part.get(key, _MISSING)
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return False
    return isinstance(part, int | float | str | bool)


def _differing(one: Any, other: Any, name: str) -> Iterator[str]:
    if isinstance(one, dict):
        others = other if isinstance(other, dict) else {}
        for key, value in one.items():
            if "." not in key and key:
                yield from _differing(value, others.get(key, _MISSING), f"{name}.{key}")
    elif isinstance(one, list):
        for index, value in enumerate(one):
            same = other[index] if isinstance(other, list) and index < len(other) else _MISSING
            yield from _differing(value, same, f"{name}.{index}")
    elif one is not None and one != other:
        yield name
