"""Tasks about scenarios: the examples, and specifications at random."""

from __future__ import annotations

import re
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.errors import PeripetyError
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.testgen.subjects.scenario.case_body import parse_body, play_turns
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from support.engine.seeded_specs import random_params
from support.repo.repository import ROOT
from support.testgen.graded_tests.tasks import HiddenTest, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.testgen.subjects.scenario.case_body import PlayedTurn


Json = dict[str, Any]

_TYPICAL = 40
"""Plays as they come to mind, whatever they notice."""

_MOST_TURNS = 4
_LONG = (10, 40)
_PATIENCE = 300
"""So many plays that notice nothing new end the search."""

_MOST_LOOKED_AT = 2
_PLAIN = re.compile(r"state(\.[A-Za-z_][A-Za-z0-9_]*)+")


def _task(name: str, document: bytes) -> Task:
    """A task whose hidden suite is plays as they come to mind, and those that notice what these do not."""
    program = engine.compile(document)
    subject = ScenarioSubject(program)
    random = Random(name)
    hidden = [_play(program, random, random.randint(1, _MOST_TURNS)) for _ in range(_TYPICAL)]
    left = {mutant.mutant_id for mutant in subject.mutants}
    for test in hidden:
        left -= subject.kills(test.case, left)
    idle = 0
    while left and idle < _PATIENCE:
        test = _play(program, random, random.choice((random.randint(1, _MOST_TURNS), *_LONG)))
        found = subject.kills(test.case, left)
        idle = 0 if found else idle + 1
        if found:
            left -= found
            hidden.append(test)
    spec = program.spec
    description = (
        f"{spec['name']}: {len(spec['actions'])} actions, {len(spec['random_events'])} events and the endings"
        " of a scenario do what its document says, turn by turn."
    )
    return Task(name, description, subject, hidden)


def _play(program: engine.Program, random: Random, length: int) -> HiddenTest:
    """Return a random play: some actions are more frequent than others, and some turns have none."""
    test = None
    while test is None:
        weights = [random.random() ** 4 for _ in program.spec["actions"]]
        idle = random.choice((0.0, 0.0, 0.3, 0.8))
        seed = random.choice((None, random.randrange(1_000)))
        steps = [_step(program.spec, random, weights, idle) for _ in range(length)]
        test = _looking(program, random, {"seed": seed, "steps": steps})
    return test


def _step(spec: Json, random: Random, weights: list[float], idle: float) -> Json:
    actions = []
    if random.random() >= idle:
        (action,) = random.choices(spec["actions"], weights)
        actions.append({"action_id": action["id"], "params": random_params(random, action)})
    return {"actions": actions, "accepted": None, "expect": None}


def _looking(program: engine.Program, random: Random, body: Json) -> HiddenTest | None:
    """A play up to its end, with what it looks at there; None when it cannot be played."""
    played: list[PlayedTurn] = []
    try:
        for turn in play_turns(program, parse_body(body)):
            played.append(turn)
            if turn.stepped.status.kind != "ongoing":
                break
    except PeripetyError:
        return None
    steps = body["steps"][: len(played)]
    if played[-1].acted:
        steps[-1]["accepted"] = all(result.accepted for result in played[-1].acted)
    steps[-1]["expect"] = {"and": [*_expected(played, random)]}
    did = [action["action_id"] for step in steps for action in step["actions"]]
    told = f"seed {body['seed']}, {len(steps)} turns: {', '.join(did)}"
    return HiddenTest(_category(played), told, {"seed": body["seed"], "steps": steps})


def _expected(played: list[PlayedTurn], random: Random) -> Iterator[Json]:
    """Yield expectations for some of the changed values and for the status of the run."""
    after = {
        change.path: change.after
        for turn in played
        for change in turn.changes
        if _PLAIN.fullmatch(change.path) and isinstance(change.after, int | float | str | bool)
    }
    for path in random.sample(sorted(after), min(len(after), random.randint(1, _MOST_LOOKED_AT))):
        yield {"===": [{"var": path}, after[path]]}
    last = played[-1].stepped
    yield {"===": [{"var": "status"}, last.status.kind]}
    if last.status.condition is not None:
        yield {"===": [{"var": "ending"}, last.status.condition]}
    if last.event is not None and random.random() < 0.5:
        yield {"===": [{"var": "event"}, last.event]}


def _category(played: list[PlayedTurn]) -> str:
    """Return the category of a play, by the rarest thing it shows."""
    if played[-1].stepped.status.kind != "ongoing":
        return "endings"
    if any(not result.accepted for turn in played for result in turn.acted):
        return "rejections"
    if any(turn.stepped.event is not None for turn in played):
        return "events"
    return "boundary" if len(played) == 1 else "actions"


def _made(name: str) -> Task:
    return _task(name, DOCUMENTS[name]())


DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "long_way": (ROOT / "examples" / "long_way.json").read_bytes,
    **{
        f"random_{seed}_{index}": partial(generate_spec, seed, index)
        for seed, index in ((1, 1), (1, 2), (1, 4))
    },
}
"""Scenarios of whose mutants few are never noticed, however long one plays."""

SCENARIOS = {name: partial(_made, name) for name in DOCUMENTS}
"""The tasks, by name, each created on demand."""
