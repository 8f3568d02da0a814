"""Baseline tests of a scenario, generated from its document without a model.

Values of parameters are pairwise combinations of boundary values and their neighbours. Sequences contain
every ordered pair of actions (D. R. Kuhn et al., "Combinatorial Methods for Event Sequence Testing", 2012).
The expectations are the current behaviour of the engine.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.errors import PeripetyError
from peripety.testgen.model import Draft
from peripety.testgen.subjects.pairs import pairs
from peripety.testgen.subjects.scenario.body import Body, PlayedAction, Step
from peripety.testgen.subjects.scenario.playing import turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety import sim
    from peripety.testgen.subjects.scenario.playing import Turn

__all__ = ["floor"]

_MOST_CALLS = 64
_MOST_SEQUENCES = 24
_STEPS = 10
_MOST_IDLE = 60
_MOST_EXPECTED = 8
_PLAIN = re.compile(r"state(\.[A-Za-z_][A-Za-z0-9_]*)+")
_WHY = "the current behaviour of the engine"


def floor(program: sim.Program) -> Iterator[Draft]:
    """Yield the tests in a deterministic order."""
    spec = program.spec
    calls = [*islice(_calls(spec["actions"]), _MOST_CALLS)]
    for number, call in enumerate(calls):
        yield from _draft(program, f"call_{number + 1}", (call,), "boundary" if call.params else "actions")
    yield from _draft(program, "idle", (None,) * _MOST_IDLE, "endings")
    usual = [*{call.action_id: call for call in calls}.values()]
    for number, sequence in enumerate(islice(_sequences(usual), _MOST_SEQUENCES)):
        yield from _draft(program, f"sequence_{number + 1}", sequence, "events")


def _draft(
    program: sim.Program, name: str, actions: Sequence[PlayedAction | None], category: str
) -> Iterator[Draft]:
    """Yield a test with the given actions, one per turn; nothing if the first turn cannot be played."""
    body = Body(None, tuple(Step((action,) if action is not None else ()) for action in actions))
    steps = []
    rejected = False
    try:
        for step, turn in zip(body.steps, turns(program, body), strict=False):
            accepted = all(result.accepted for result in turn.acted) if turn.acted else None
            rejected = rejected or accepted is False
            steps.append(
                {
                    "actions": [
                        {"action_id": action.action_id, "params": dict(action.params)}
                        for action in step.actions
                    ],
                    "accepted": accepted,
                    "expect": _expected(turn),
                }
            )
            if turn.stepped.status.kind != "ongoing":
                break
    except PeripetyError:
        pass  # the turns before the error are playable
    if steps:
        told = ", ".join(action.action_id if action else "wait" for action in islice(actions, len(steps)))
        yield Draft(
            name,
            told,
            None,
            _WHY,
            1.0,
            {"seed": None, "steps": steps},
            "rejections" if rejected and category == "actions" else category,
        )


def _expected(turn: Turn) -> dict[str, Any]:
    """Return the observed result of a turn as an expectation: changed values, status, ending, event."""
    after = {
        change.path: change.after
        for change in turn.changes
        if _PLAIN.fullmatch(change.path) and isinstance(change.after, int | float | str | bool)
    }
    status = turn.stepped.status
    holds: list[dict[str, Any]] = [
        {"===": [{"var": path}, value]} for path, value in islice(after.items(), _MOST_EXPECTED)
    ]
    holds.append({"===": [{"var": "status"}, status.kind]})
    if status.condition is not None:
        holds.append({"===": [{"var": "ending"}, status.condition]})
    holds.append({"===": [{"var": "event"}, turn.stepped.event]})
    return {"and": holds}


def _calls(actions: Sequence[Mapping[str, Any]]) -> Iterator[PlayedAction]:
    """Yield every action with values at the bounds of its parameters, and beyond them."""
    for action in actions:
        choices = {name: _values(param) for name, param in sorted(action["params"].items())}
        for row in pairs(choices):
            yield PlayedAction(action["id"], row)


def _values(param: Mapping[str, Any]) -> list[Any]:
    if param.get("enum"):
        return list(param["enum"])
    match param["type"]:
        case "boolean":
            return [True, False]
        case "string":
            return ["a", ""]
    values = [0, 1]
    if param.get("minimum") is not None:
        values += [param["minimum"], param["minimum"] - 1]
    if param.get("maximum") is not None:
        values += [param["maximum"], param["maximum"] + 1]
    return sorted({*values})


def _sequences(calls: Sequence[PlayedAction]) -> Iterator[list[PlayedAction]]:
    """Yield all ordered pairs of actions, in sequences of a few turns."""
    waiting = {first.action_id: [*calls] for first in calls}
    by_id = {call.action_id: call for call in calls}
    while any(waiting.values()):
        now = next(call for call in calls if waiting[call.action_id])
        sequence = [now]
        while len(sequence) < _STEPS and waiting[now.action_id]:
            following = max(waiting[now.action_id], key=lambda call: len(waiting[call.action_id]))
            waiting[now.action_id].remove(following)
            now = by_id[following.action_id]
            sequence.append(now)
        yield sequence
