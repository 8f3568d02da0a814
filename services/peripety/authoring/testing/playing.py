"""Tests of a scenario: plays that reach something new, with the results of the engine."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.authoring.testing.plays import Play, calls_of, plays_of
from peripety.authoring.testing.sketches import Sketch, Written
from peripety.authoring.testing.traces import difference, traced
from peripety.authoring.testing.variants import mistake, part_at, path_of, variants
from peripety.errors import PeripetyError
from peripety.sim.schema import segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.authoring.testing.asked import Asked
    from peripety.authoring.testing.traces import Difference, Turn

__all__ = ["sketches_of_scenario"]

_MOST_PROBES = 300
_ENOUGH = 2
"""The maximum number of tests for the same target."""

_MOST_EXPECTED = 8
_KIND = {"action": "actions", "rejection": "rejections", "event": "events", "schedule": "events"}


@dataclass(frozen=True)
class _Wrong:
    """Compiled mutant."""

    survivor: Mapping[str, Any]
    program: sim.Program
    action_ids: Sequence[str]

    @property
    def name(self) -> str:
        return str(self.survivor["mutant"])

    @property
    def is_border(self) -> bool:
        """Return True if it mutates a bound of a condition or a range."""
        before, path = self.survivor.get("before"), path_of(self.survivor)
        is_number = isinstance(before, int | float) and not isinstance(before, bool)
        return any(f"/{part}/" in path for part in ("when", "preconditions", "params")) and (
            is_number or "comparison" in self.name
        )

    def may_show_in(self, play: Play) -> bool:
        """Return True if a play may detect it: a mutant of an action needs a call of the action."""
        match segments(path_of(self.survivor)):
            case ["actions", index, *_]:
                action_id = self.action_ids[int(index)]
            case _:
                return True
        return any(call is not None and call.action_id == action_id for call in play.turns)


def sketches_of_scenario(document: Mapping[str, Any], asked: Asked) -> list[Sketch]:
    """Return tests of a scenario, simplest first; they expect the results of the engine.

    Raises:
        SpecError: the document is not a valid scenario.
    """
    program = sim.compile(json.dumps(document).encode())
    wrong = [*_compiled(document, asked)]
    wanted = {_shown(document, target): target for target in asked.uncovered}
    plays = [*{str(play): play for play in plays_of(program)}.values()]
    left = Counter(dict.fromkeys([*(one.name for one in wrong), *wanted.values()], _ENOUGH))
    sketches: list[Sketch] = []

    def look(play: Play) -> None:
        found = [*_sketches(program, play, [one for one in wrong if left[one.name] > 0], wanted)]
        sketches.extend(found)
        left.subtract({gain for sketch in found for gain in sketch.gains})

    for play in plays:
        look(play)
    for play in islice(_probes(document, plays, asked, left), _MOST_PROBES):
        look(play)
    return sketches


def _compiled(document: Mapping[str, Any], asked: Asked) -> Iterator[_Wrong]:
    action_ids = [action["id"] for action in document["actions"]]
    for survivor, variant in variants(document, asked.survivors):
        try:
            yield _Wrong(survivor, sim.compile(json.dumps(variant).encode()), action_ids)
        except PeripetyError:
            continue


def _shown(document: Mapping[str, Any], target: str) -> str:
    """Return the label of a turn that reaches a target: its kind, and the id at its path."""
    kind, _, path = target.partition(":")
    try:
        return f"{kind} {part_at(document, path)['id']}"
    except (KeyError, IndexError, TypeError, ValueError):
        return target


def _probes(
    document: Mapping[str, Any], plays: Sequence[Play], asked: Asked, left: Mapping[str, int]
) -> Iterator[Play]:
    """Yield plays that insert each action with unreached targets at every turn of the known plays."""
    paths = [(path_of(survivor), survivor["mutant"]) for survivor in asked.survivors]
    paths += [(target.partition(":")[2], target) for target in asked.uncovered]
    for index, action in enumerate(document["actions"]):
        of = [name for path, name in paths if f"{path}/".startswith(f"/actions/{index}/")]
        usual = calls_of(action)[0]
        for play in plays:
            for turn in range(1, len(play.turns)):
                if all(left[name] < _ENOUGH for name in of):
                    break
                if play.turns[turn] != usual:
                    yield replace(play, turns=(*play.turns[:turn], usual))


def _sketches(
    program: sim.Program, play: Play, wrong: Sequence[_Wrong], wanted: Mapping[str, str]
) -> Iterator[Sketch]:
    """Yield the tests of a play: one up to each turn that shows something new."""
    turns = traced(program, play)
    differing: dict[str, Difference] = {}
    borders: set[int] = set()
    for one in wrong:
        found = difference(turns, one.program, play) if one.may_show_in(play) else None
        if found is not None:
            differing[one.name] = found
            if one.is_border:
                borders.add(found.turn)
    told_of = {one.name: one.survivor for one in wrong}
    shown: set[str] = set()
    for index, turn in enumerate(turns):
        here = [name for name, found in differing.items() if found.turn == index]
        new = turn.shows - shown
        shown |= new
        is_last = index + 1 == len(turns)
        if not new and not here and not is_last:
            continue
        reached = [name for name, found in differing.items() if found.turn <= index]
        gains = {wanted[show] for show in shown if show in wanted} | {*reached}
        cut = Play(play.turns[: index + 1], play.seed)
        call = cut.turns[-1]
        fits = {_KIND.get(show.partition(" ")[0], "endings") for show in turn.shows}
        if index in borders or (call is not None and call.is_border):
            fits.add("boundary")
        told = here or reached[:1]
        why = mistake(told_of[told[0]]) if told else f"It shows {', '.join(sorted(new)) or 'a turn'}."
        watch = {found.turn: found.variables for name, found in differing.items() if found.turn <= index}
        yield Sketch(
            str(cut),
            frozenset(fits),
            frozenset(gains),
            partial(_written, cut, turns, watch, why),
            frozenset(turn.shows | ({str(call)} if call is not None and call.is_border else set())),
            index + 1,
        )


def _written(play: Play, turns: Sequence[Turn], watch: Mapping[int, Sequence[str]], why: str) -> Written:
    """Return a test that expects the changed values and the run status of each turn."""
    steps = []
    for index, (call, turn) in enumerate(zip(play.turns, turns, strict=False)):
        # The values that detect a mutant come first.
        paths = dict.fromkeys([*watch.get(index, ()), *turn.changed])
        holds: list[dict[str, Any]] = [
            {"===": [{"var": path}, turn.value(path)]} for path in islice(paths, _MOST_EXPECTED)
        ]
        holds.append({"===": [{"var": "status"}, turn.status]})
        if turn.ending is not None:
            holds.append({"===": [{"var": "ending"}, turn.ending]})
        holds.append({"===": [{"var": "event"}, turn.event]})
        actions = [] if call is None else [{"action_id": call.action_id, "params": dict(call.params)}]
        steps.append({"actions": actions, "accepted": turn.accepted, "expect": {"and": holds}})
    last = turns[len(play.turns) - 1]
    name = "_".join(sorted(last.shows)).replace(" ", "_").lower() or "waiting"
    return Written(name, why, None, {"seed": play.seed, "steps": steps})
