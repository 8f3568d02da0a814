"""What a narrator is told about a turn: only what its audience may know, and never more than fits.

The system text is the same for the life of a session. The question changes from turn to turn, and takes a
small part of the prompt whatever the size of the state: four fifths of it stay as they were, and the last
turn of a long session costs what its twentieth did. Whatever the other parts leave goes to the past.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import CacheConfig
from peripety.sessions.events import ActionResolved, encode
from peripety.sessions.memory import recalled
from peripety.sessions.narrating.abridging import abridged, clipped, size, text_of
from peripety.sessions.narrating.background import background
from peripety.sessions.narrating.past import in_brief, last_rolls, summaries
from peripety.sessions.prompts import prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.gateway.model import Tool
    from peripety.sessions.events import WorldResolved
    from peripety.sessions.mechanics import Played
    from peripety.sessions.narrating.scene import Scene
    from peripety.sessions.visibility import SessionView

__all__ = ["cache_plan", "facts_of", "fixed_bytes", "question", "system_text"]

_FLOOR_BYTES = 1_400
"""Room for the question of even the smallest scenario, so that it stays useful."""
_SHARE_OF_FIXED = 0.24
_SHARES = {"input": 0.2, "facts": 0.45, "view": 0.3, "legal_actions": 0.1, "memories": 0.1}
"""The most of the room that each part takes, in the order in which they are served.

What the player said is told beyond its share as well, but the others make room for no more than that.
"""
_INPUT_CHARACTERS = 4_000
_NAME_CHARACTERS = 120
_REASON_CHARACTERS = 240
_LEGAL_ACTIONS = 16
_MEMORIES = 16
_KEPT_TEXTS = 64
_TURNS_AT_LENGTH = 3
# How many changes and log lines are told, and the bytes of their values, from generous to sparse.
_GENEROSITY = ((24, 8, 400), (16, 8, 160), (12, 6, 80), (8, 4, 60), (5, 3, 48), (3, 2, 40), (1, 1, 40))
_EXPECTED_TURNS = 50


def system_text(scene: Scene) -> str:
    """The instructions, and the scenario as its public rules tell it: the same in every turn of a session."""
    session, view = scene.session, scene.view
    language = session.narrator.language
    return _system_text(_Telling(session.spec_hash, view.viewer, language, scene.spec, view))


def question(scene: Scene, played: Played | None, *, beside: int = 0) -> str:
    """The last message: one JSON object, what changes least standing first.

    Args:
        scene: the turn.
        played: the turn to its end, where the narrator may know it; None while it may still act.
        beside: what else of the prompt stays the same; see `fixed_bytes`.
    """
    room = max(_FLOOR_BYTES, int((len(system_text(scene).encode()) + beside) * _SHARE_OF_FIXED))
    tree = scene.stage.board.state.tree() if played is None else played.tree
    parts: dict[str, Callable[[int], Any]] = {
        "facts": lambda most: _fitting_facts(scene, played, most),
        "view": lambda most: abridged(_since_start(scene, tree), most),
        "legal_actions": lambda most: _legal_actions(scene, most) if played is None else None,
        "memories": lambda most: _newest(_memories(scene), most),
    }
    said = clipped(scene.input, _INPUT_CHARACTERS)
    told: dict[str, Any] = {"rolls": last_rolls(scene)}
    left = room - size(told) - min(size(said), int(room * _SHARES["input"]))
    for name, part in parts.items():
        told[name] = part(min(left, int(room * _SHARES[name])))
        left -= size({name: told[name]})
    told["history"] = _history(scene, left)
    told["facts"] |= {"input": said} if said else {}
    order = ("memories", "legal_actions", "history", "rolls", "view", "facts")
    return text_of({name: told[name] for name in order if told[name] is not None})


def fixed_bytes(tools: Iterable[Tool]) -> int:
    """The bytes that tools have in a prompt; they stay the same beside the system text."""
    return size([[tool.name, tool.description, tool.input_schema] for tool in tools])


def facts_of(scene: Scene, played: Played | None) -> dict[str, Any]:
    """What was decided in the turn, as far as the audience may know it.

    Args:
        scene: the turn.
        played: the turn to its end; None for what was decided of it so far.
    """
    facts = _facts(scene, played, *_GENEROSITY[0])
    return facts | ({"input": clipped(scene.input, _INPUT_CHARACTERS)} if scene.input else {})


def cache_plan(scene: Scene) -> CacheConfig:
    """How to have the prompt cached: the turns to come begin in the same way."""
    to_come = scene.spec.get("horizon", _EXPECTED_TURNS) - scene.turn
    return CacheConfig(expected_reuse=max(1, to_come))


# --- what stays the same ---


@dataclass(frozen=True, slots=True)
class _Telling:
    """What a system text hangs on; the spec and the view follow from the rest."""

    spec_hash: str
    viewer: str | None
    language: str | None
    spec: Mapping[str, Any] = field(compare=False, repr=False)
    view: SessionView = field(compare=False, repr=False)


@lru_cache(maxsize=_KEPT_TEXTS)
def _system_text(telling: _Telling) -> str:
    scenario = background(telling.spec, telling.view, telling.language)
    return f"{prompt('narrate')}\n{text_of(scenario)}\n"


# --- the turn ---


def _fitting_facts(scene: Scene, played: Played | None, room: int) -> dict[str, Any]:
    """The facts in at most `room` bytes, or as few as there are."""
    for limits in _GENEROSITY:
        facts = _facts(scene, played, *limits)
        if size(facts) <= room:
            break
    return facts


def _facts(scene: Scene, played: Played | None, changes: int, lines: int, value_bytes: int) -> dict[str, Any]:
    events = scene.stage.board.events if played is None else played.events
    acts = [event for event in events if isinstance(event, ActionResolved)]
    parts: list[ActionResolved | WorldResolved] = [*acts, *([] if played is None else [played.world])]
    moved = scene.view.changes(change for part in parts for change in part.changes)
    names = scene.action_names
    told = {
        "turn": scene.turn,
        "actions": [_action(act, names, value_bytes) for act in acts if act.accepted],
        "rejected": [_rejected(act, names, scene.view) for act in acts if not act.accepted],
        "changes": [_change(change, value_bytes) for change in encode(moved[:changes])],
        "log": [clipped(line.message, value_bytes) for part in parts for line in part.log][:lines],
    }
    if played is not None:
        event_id = played.world.event_id
        told["event"] = {"id": event_id, "name": _short(scene.event_names[event_id])} if event_id else None
        told["status"] = encode(played.world.status)
    return {name: value for name, value in told.items() if value or name != "rejected"}


def _action(act: ActionResolved, names: Mapping[str, str], value_bytes: int) -> dict[str, Any]:
    params = {name: abridged(value, value_bytes) for name, value in act.params.items()}
    return {"id": act.action_id, "name": _short(names[act.action_id]), "params": params}


def _rejected(act: ActionResolved, names: Mapping[str, str], view: SessionView) -> dict[str, Any]:
    reasons = [clipped(reason.message, _REASON_CHARACTERS) for reason in view.failures(act.reasons)]
    return {"name": _short(names[act.action_id]), "reasons": reasons}


def _change(change: Mapping[str, Any], value_bytes: int) -> dict[str, Any]:
    shown = {key: change[key] for key in ("path", "cause")}
    return shown | {key: abridged(change[key], value_bytes) for key in ("before", "after") if key in change}


def _legal_actions(scene: Scene, room: int) -> list[dict[str, Any]]:
    """What can be tried now, as far as there is room."""
    legal = set(scene.stage.board.legal_actions)
    actions = [_suggested(action) for action in scene.spec["actions"] if action["id"] in legal]
    return list(_first(actions[:_LEGAL_ACTIONS], room))


def _suggested(action: Mapping[str, Any]) -> dict[str, Any]:
    told = {"id": action["id"], "name": _short(action.get("name", "")), "params": list(action["params"])}
    return {key: value for key, value in told.items() if value}


def _history(scene: Scene, room: int) -> list[dict[str, Any]]:
    """The turns before in at most `room` bytes: several in short rather than one at length."""
    turns = summaries(scene)
    most, shorter = _newest(turns, room), _newest([in_brief(turn) for turn in turns], room)
    return most if len(most) >= min(_TURNS_AT_LENGTH, len(shorter)) else shorter


def _memories(scene: Scene) -> list[dict[str, Any]]:
    """What the audience may read of what is remembered, oldest first."""
    return [
        {"turn": memory.turn, "whose": memory.owner, "about": memory.scope, "content": memory.content}
        for memory in recalled(scene.session.memories, scene.view.viewer)[-_MEMORIES:]
    ]


def _since_start(scene: Scene, tree: Any) -> Any:
    """How the state differs from that of the start, which the system text tells: a JSON merge patch."""
    return _patch(scene.view.state(scene.spec["state"]), scene.view.state(tree))


def _patch(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(key for key in before if key not in after)
    for key, value in after.items():
        known = before.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            inner = _patch(known, value)
            patch |= {key: inner} if inner else {}
        elif key not in before or not _same(known, value):
            patch[key] = value
    return patch


def _same(first: Any, second: Any) -> bool:
    """Whether two values are the same; to Python alone `true` would equal 1."""
    return first == second and text_of(first) == text_of(second)


def _first(items: Sequence[Any], room: int) -> Iterator[Any]:
    """The first of some items that find room together."""
    for item in items:
        room -= size(item) + 1
        if room < 0:
            return
        yield item


def _newest(items: Sequence[Any], room: int) -> list[Any]:
    """The last of some items that find room together, in their order."""
    return list(_first(items[::-1], room))[::-1]


def _short(text: str) -> str:
    return clipped(text, _NAME_CHARACTERS)
