"""Baseline tests of a scenario, generated from its document without a model.

Values of parameters are pairwise combinations of boundary values and their neighbours. Sequences contain
every ordered pair of actions (D. R. Kuhn et al., "Combinatorial Methods for Event Sequence Testing", 2012).
The expectations are the current behaviour of the engine.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.author.test_author.engine_traces import Play, PlayCall
from peripety.errors import PeripetyError
from peripety.testgen.subjects.scenario.case_body import BodyStep, PlayedAction, ScenarioBody, play_turns
from peripety.testgen.subjects.subject import pairwise
from peripety.testgen.types import DraftTest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety import engine
    from peripety.testgen.subjects.scenario.case_body import PlayedTurn


_MAX_CALLS = 64
_MAX_SEQUENCES = 24
_MAX_SEQUENCE_STEPS = 10
_MAX_IDLE_TURNS = 60
_MAX_EXPECTED_VALUES = 8
_PLAIN_PATH_PATTERN = re.compile(r"state(\.[A-Za-z_][A-Za-z0-9_]*)+")
_BASELINE_REASONING = "the current behaviour of the engine"


def scenario_baseline_tests(program: engine.Program) -> Iterator[DraftTest]:
    """Yield the tests in a deterministic order."""
    spec = program.spec
    calls = [*islice(_iter_calls(spec["actions"]), _MAX_CALLS)]
    for number, call in enumerate(calls):
        yield from _iter_draft(
            program,
            f"call_{number + 1}",
            (call,),
            "boundary" if call.params else "actions",
        )
    yield from _iter_draft(program, "idle", (None,) * _MAX_IDLE_TURNS, "endings")
    usual = [*{call.action_id: call for call in calls}.values()]
    for number, sequence in enumerate(islice(_iter_sequences(usual), _MAX_SEQUENCES)):
        yield from _iter_draft(program, f"sequence_{number + 1}", sequence, "events")


def _iter_draft(
    program: engine.Program,
    name: str,
    actions: Sequence[PlayedAction | None],
    category: str,
) -> Iterator[DraftTest]:
    """Yield a test with the given actions, one per turn; nothing if the first turn cannot be played."""
    body = ScenarioBody(None, tuple(BodyStep((action,) if action is not None else ()) for action in actions))
    steps = []
    rejected = False
    try:
        for step, turn in zip(body.steps, play_turns(program, body), strict=False):
            accepted = all(result.accepted for result in turn.acted) if turn.acted else None
            rejected = rejected or accepted is False
            steps.append(
                {
                    "actions": [
                        {"action_id": action.action_id, "params": dict(action.params)}
                        for action in step.actions
                    ],
                    "accepted": accepted,
                    "expect": _observed_expectation(turn),
                },
            )
            if turn.stepped.status.kind != "ongoing":
                break
    except PeripetyError:
        pass  # the turns before the error are playable
    if steps:
        told = Play(
            tuple(
                PlayCall(action.action_id, action.params) if action else None
                for action in islice(actions, len(steps))
            ),
        )
        yield DraftTest(
            name,
            str(told),
            None,
            _BASELINE_REASONING,
            1.0,
            {"seed": None, "steps": steps},
            "rejections" if rejected and category == "actions" else category,
        )


def _observed_expectation(turn: PlayedTurn) -> dict[str, Any]:
    """Return the observed result of a turn as an expectation: changed values, status, ending, event."""
    after = {
        change.path: change.after
        for change in turn.changes
        if _PLAIN_PATH_PATTERN.fullmatch(change.path) and isinstance(change.after, int | float | str | bool)
    }
    status = turn.stepped.status
    holds: list[dict[str, Any]] = [
        {"===": [{"var": path}, value]} for path, value in islice(after.items(), _MAX_EXPECTED_VALUES)
    ]
    holds.append({"===": [{"var": "status"}, status.kind]})
    if status.condition is not None:
        holds.append({"===": [{"var": "ending"}, status.condition]})
    holds.append({"===": [{"var": "event"}, turn.stepped.event]})
    return {"and": holds}


def _iter_calls(actions: Sequence[Mapping[str, Any]]) -> Iterator[PlayedAction]:
    """Yield every action with values at the bounds of its parameters, and beyond them."""
    for action in actions:
        choices = {name: _parameter_values(param) for name, param in sorted(action["params"].items())}
        for row in pairwise(choices):
            yield PlayedAction(action["id"], row)


def _parameter_values(param: Mapping[str, Any]) -> list[Any]:
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


def _iter_sequences(calls: Sequence[PlayedAction]) -> Iterator[list[PlayedAction]]:
    """Yield all ordered pairs of actions, in sequences of a few turns."""
    waiting = {first.action_id: [*calls] for first in calls}
    by_id = {call.action_id: call for call in calls}
    while any(waiting.values()):
        now = next(call for call in calls if waiting[call.action_id])
        sequence = [now]
        while len(sequence) < _MAX_SEQUENCE_STEPS and waiting[now.action_id]:
            following = max(waiting[now.action_id], key=lambda call: len(waiting[call.action_id]))
            waiting[now.action_id].remove(following)
            now = by_id[following.action_id]
            sequence.append(now)
        yield sequence
