"""Tests of a scenario: plays that reach something new, with the results of the engine."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.test_author.candidates import Candidate, CandidateDetails
from peripety.author.test_author.engine_traces import (
    Play,
    boundary_calls,
    describe_mutation,
    find_difference,
    generate_plays,
    mutate_document,
    mutated_path,
    trace,
    value_at,
)
from peripety.engine.rule_text import diff_specs
from peripety.engine.schema_validation import parse_pointer
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.author.test_author.candidates import AuthoringRequest
    from peripety.author.test_author.engine_traces import TraceDifference, TracedTurn


_MAX_PROBES = 300
_MAX_TESTS_PER_TARGET = 2
"""The maximum number of tests for the same target."""

_MAX_EXPECTED = 8
_KIND = {"action": "actions", "rejection": "rejections", "event": "events", "schedule": "events"}


@dataclass(frozen=True)
class _CompiledMutant:
    """Compiled mutant."""

    survivor: Mapping[str, Any]
    document: Mapping[str, Any]
    program: engine.Program
    action_ids: Sequence[str]

    @property
    def name(self) -> str:
        return str(self.survivor["mutant"])

    @property
    def is_boundary_mutant(self) -> bool:
        """Return True if it mutates a bound of a condition or a range."""
        before, path = self.survivor.get("before"), mutated_path(self.survivor)
        is_number = isinstance(before, int | float) and not isinstance(before, bool)
        return any(f"/{part}/" in path for part in ("when", "preconditions", "params")) and (
            is_number or "comparison" in self.name
        )

    def may_be_detected_by(self, play: Play) -> bool:
        """Return True if a play may detect it: a mutant of an action needs a call of the action."""
        match parse_pointer(mutated_path(self.survivor)):
            case ["actions", index, *_]:
                action_id = self.action_ids[int(index)]
            case _:
                return True
        return any(call is not None and call.action_id == action_id for call in play.turns)


def scenario_candidates(document: Mapping[str, Any], asked: AuthoringRequest) -> list[Candidate]:
    """Return tests of a scenario, simplest first; they expect the results of the engine.

    Raises:
        SpecError: the document is not a valid scenario.
    """
    program = engine.compile(json.dumps(document).encode())
    wrong = [*_compile_mutants(document, asked)]
    wanted = {_target_label(document, target): target for target in asked.uncovered}
    plays = [*{str(play): play for play in generate_plays(program)}.values()]
    left = Counter(dict.fromkeys([*(one.name for one in wrong), *wanted.values()], _MAX_TESTS_PER_TARGET))
    sketches: list[Candidate] = []

    def look(play: Play) -> None:
        found = [
            *_play_candidates(document, program, play, [one for one in wrong if left[one.name] > 0], wanted)
        ]
        sketches.extend(found)
        left.subtract({gain for sketch in found for gain in sketch.gains})

    for play in plays:
        look(play)
    for play in islice(_iter_probes(document, plays, asked, left), _MAX_PROBES):
        look(play)
    return sketches


def _compile_mutants(document: Mapping[str, Any], asked: AuthoringRequest) -> Iterator[_CompiledMutant]:
    action_ids = [action["id"] for action in document["actions"]]
    for survivor, variant in mutate_document(document, asked.survivors):
        try:
            yield _CompiledMutant(survivor, variant, engine.compile(json.dumps(variant).encode()), action_ids)
        except PeripetyError:
            continue


def _target_label(document: Mapping[str, Any], target: str) -> str:
    """Return the label of a turn that reaches a target: its kind, and the id at its path."""
    kind, _, path = target.partition(":")
    try:
        return f"{kind} {value_at(document, path)['id']}"
    except (KeyError, IndexError, TypeError, ValueError):
        return target


def _iter_probes(
    document: Mapping[str, Any],
    plays: Sequence[Play],
    asked: AuthoringRequest,
    left: Mapping[str, int],
) -> Iterator[Play]:
    """Yield plays that insert each action with unreached targets at every turn of the known plays."""
    paths = [(mutated_path(survivor), survivor["mutant"]) for survivor in asked.survivors]
    paths += [(target.partition(":")[2], target) for target in asked.uncovered]
    for index, action in enumerate(document["actions"]):
        of = [name for path, name in paths if f"{path}/".startswith(f"/actions/{index}/")]
        usual = boundary_calls(action)[0]
        for play in plays:
            for turn in range(1, len(play.turns)):
                if all(left[name] < _MAX_TESTS_PER_TARGET for name in of):
                    break
                if play.turns[turn] != usual:
                    yield replace(play, turns=(*play.turns[:turn], usual))


def _describe_mutant(document: Mapping[str, Any], mutant: _CompiledMutant) -> str:
    """Return one sentence about the mutation, in the words of the rules."""
    # An exchange of two rules changes none of them.
    changes = "; ".join(edit.summary for edit in diff_specs(document, mutant.document))
    return f"It would fail after this change: {changes}." if changes else describe_mutation(mutant.survivor)


def _play_candidates(
    document: Mapping[str, Any],
    program: engine.Program,
    play: Play,
    wrong: Sequence[_CompiledMutant],
    wanted: Mapping[str, str],
) -> Iterator[Candidate]:
    """Yield the tests of a play: one up to each turn that shows something new."""
    turns = trace(program, play)
    differing: dict[str, TraceDifference] = {}
    borders: set[int] = set()
    for one in wrong:
        found = find_difference(turns, one.program, play) if one.may_be_detected_by(play) else None
        if found is not None:
            differing[one.name] = found
            if one.is_boundary_mutant:
                borders.add(found.turn)
    told_of = {one.name: one for one in wrong}
    shown: set[str] = set()
    for index, turn in enumerate(turns):
        here = [name for name, found in differing.items() if found.turn == index]
        new = turn.labels - shown
        shown |= new
        is_last = index + 1 == len(turns)
        if not new and not here and not is_last:
            continue
        reached = [name for name, found in differing.items() if found.turn <= index]
        gains = {wanted[show] for show in shown if show in wanted} | {*reached}
        cut = Play(play.turns[: index + 1], play.seed)
        call = cut.turns[-1]
        fits = {_KIND.get(show.partition(" ")[0], "endings") for show in turn.labels}
        if index in borders or (call is not None and call.is_boundary):
            fits.add("boundary")
        told = here or reached[:1]
        why = (
            _describe_mutant(document, told_of[told[0]])
            if told
            else f"It shows {', '.join(sorted(new)) or 'a turn'}."
        )
        watch = {found.turn: found.variables for name, found in differing.items() if found.turn <= index}
        yield Candidate(
            str(cut),
            frozenset(fits),
            frozenset(gains),
            partial(_write_play_test, cut, turns, watch, why),
            frozenset(turn.labels | ({str(call)} if call is not None and call.is_boundary else set())),
            index + 1,
        )


def _write_play_test(
    play: Play,
    turns: Sequence[TracedTurn],
    watch: Mapping[int, Sequence[str]],
    why: str,
) -> CandidateDetails:
    """Return a test that expects the changed values and the run status of each turn."""
    steps = []
    for index, (call, turn) in enumerate(zip(play.turns, turns, strict=False)):
        # The values that detect a mutant come first.
        paths = dict.fromkeys([*watch.get(index, ()), *turn.changed])
        holds: list[dict[str, Any]] = [
            {"===": [{"var": path}, turn.value(path)]} for path in islice(paths, _MAX_EXPECTED)
        ]
        holds.append({"===": [{"var": "status"}, turn.status]})
        if turn.ending_id is not None:
            holds.append({"===": [{"var": "ending"}, turn.ending_id]})
        holds.append({"===": [{"var": "event"}, turn.event_id]})
        actions = [] if call is None else [{"action_id": call.action_id, "params": dict(call.params)}]
        steps.append({"actions": actions, "accepted": turn.accepted, "expect": {"and": holds}})
    last = turns[len(play.turns) - 1]
    name = "_".join(sorted(last.labels)).replace(" ", "_").lower() or "waiting"
    return CandidateDetails(name, why, None, {"seed": play.seed, "steps": steps})
