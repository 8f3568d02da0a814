"""Summaries of previous turns, generated from their records."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.scenarios.inspecting.touching import read_paths
from peripety.scenarios.phrases import quantity
from peripety.scenarios.public import Public
from peripety.sessions.events import Accepted, ActionResolved, Committed, Rolled, WorldResolved
from peripety.sessions.narrating.abridging import abridged, clipped
from peripety.sessions.narrating.scene import REMEMBERED_TURNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.scenarios.inspecting.touching import Path
    from peripety.sessions.model import CommittedTurn
    from peripety.sessions.narrating.scene import Rules, Scene
    from peripety.sessions.visibility import SessionView
    from peripety.sim import Change, RollResult

__all__ = ["in_brief", "last_rolls", "narrations", "summaries", "told_roll"]

_NARRATION_CHARACTERS = 240
_SAID_CHARACTERS = 120
_CHANGES = 4
_BRIEF_CHARACTERS = 60
_BRIEF_CHANGES = 2
_KEPT_RULES = 64
_VALUE_BYTES = 40


def summaries(scene: Scene) -> list[dict[str, Any]]:
    """Return summaries of the previous turns, oldest first, limited to what the audience may know."""
    matters, actions, events = _matters(scene.rules), scene.action_names, scene.event_names
    return [_summary(turn, scene.view, matters, actions, events) for turn in scene.past[-REMEMBERED_TURNS:]]


def in_brief(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten a summary."""
    shorter = {key: clipped(summary[key], _BRIEF_CHARACTERS) for key in ("said", "told") if key in summary}
    changed = dict(islice(summary.get("changed", {}).items(), _BRIEF_CHANGES))
    return {**summary, **shorter, **({"changed": changed} if changed else {})}


def narrations(scene: Scene) -> list[str]:
    """Return the truncated narrations of previous turns that the audience has seen, oldest first."""
    told = [_parts(turn)[2] for turn in scene.past[-REMEMBERED_TURNS:] if scene.view.hears(turn.pov)]
    return [clipped(committed.narrative, _NARRATION_CHARACTERS) for committed in told]


def last_rolls(scene: Scene) -> list[dict[str, Any]]:
    """Return the dice of the previous turn.

    Its narrator may have requested them without seeing the result.
    """
    last = [turn for turn in scene.past[-1:] if scene.view.hears(turn.pov)]
    return [told_roll(event.roll) for turn in last for event in turn.events if isinstance(event, Rolled)]


def told_roll(roll: RollResult) -> dict[str, Any]:
    """Format a die roll for a prompt."""
    told = {"kind": roll.kind, "target": roll.target, "difficulty": roll.difficulty, "face": roll.roll}
    return {key: value for key, value in told.items() if value is not None} | {"success": roll.success}


def _summary(
    turn: CommittedTurn,
    view: SessionView,
    matters: frozenset[Path],
    actions: Mapping[str, str],
    events: Mapping[str, str],
) -> dict[str, Any]:
    accepted, world, committed = _parts(turn)
    hears = view.hears(turn.pov)
    acts = [event for event in turn.events if isinstance(event, ActionResolved) and event.accepted]
    told = {
        "did": [clipped(actions[act.action_id], _SAID_CHARACTERS) for act in acts],
        "said": clipped(accepted.input, _SAID_CHARACTERS) if hears else "",
        "event": clipped(events[world.event_id], _SAID_CHARACTERS) if world.event_id else "",
        "changed": dict(_net(view.changes(committed.changes), matters)),
        "told": clipped(committed.narrative, _NARRATION_CHARACTERS) if hears else "",
    }
    return {"turn": turn.turn} | {key: value for key, value in told.items() if value}


def _parts(turn: CommittedTurn) -> tuple[Accepted, WorldResolved, Committed]:
    """Return the first event, the world's event and the last event, which every turn has once."""
    accepted = next(event for event in turn.events if isinstance(event, Accepted))
    world = next(event for event in turn.events if isinstance(event, WorldResolved))
    committed = next(event for event in turn.events if isinstance(event, Committed))
    return accepted, world, committed


def _net(changes: Iterable[Change], matters: frozenset[Path]) -> list[tuple[str, list[Any]]]:
    """Return the net changes of a turn; paths that end conditions depend on come first."""
    moved: dict[str, tuple[Any, Any]] = {}
    for change in changes:
        moved[change.path] = (moved.get(change.path, (change.before, None))[0], change.after)
    of_weight = sorted(moved, key=lambda path: sim.parse_path(path) not in matters)
    return [(quantity(path), [_value(value) for value in moved[path]]) for path in of_weight[:_CHANGES]]


def _value(value: Any) -> Any:
    return None if value is sim.ABSENT else abridged(value, _VALUE_BYTES)


@lru_cache(maxsize=_KEPT_RULES)
def _matters(rules: Rules) -> frozenset[Path]:
    """Return the paths that the public part of the end conditions depends on."""
    public = Public(rules.spec)
    ends = (*rules.spec["loss_conditions"], *rules.spec.get("win_conditions", ()))
    conditions = (public.part_of({"preconditions": end["when"], "effects": ()}).preconditions for end in ends)
    return frozenset(path for condition in conditions for path in read_paths(condition))
