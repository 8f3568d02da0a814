"""User message of the narrator's prompt: the turn, limited to what its audience may know and to a fixed size.

The system text is the same for the life of a session. The user message changes every turn, but is a small
part of the prompt whatever the size of the state: about four fifths of the prompt stay the same and can be
cached. The last turn of a long session therefore costs as much as its twentieth. The history gets the bytes
that the other parts leave.
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
"""Minimum size of the user message, so that it is useful even for the smallest scenario."""
_SHARE_OF_FIXED = 0.24
_SHARES = {"input": 0.2, "facts": 0.45, "view": 0.3, "legal_actions": 0.1, "memories": 0.1}
"""Maximum share of each part, in the order in which they are filled.

The player's input may exceed its share, but the other parts do not shrink further for it.
"""
_INPUT_CHARACTERS = 4_000
_NAME_CHARACTERS = 120
_REASON_CHARACTERS = 240
_LEGAL_ACTIONS = 16
_MEMORIES = 16
_KEPT_TEXTS = 64
_TURNS_AT_LENGTH = 3
# Limits on changes, log lines and bytes of their values, from generous to sparse.
_GENEROSITY = ((24, 8, 400), (16, 8, 160), (12, 6, 80), (8, 4, 60), (5, 3, 48), (3, 2, 40), (1, 1, 40))
_EXPECTED_TURNS = 50


def system_text(scene: Scene) -> str:
    """Return the system text: instructions and scenario, identical in every turn of a session."""
    session, view = scene.session, scene.view
    language = session.narrator.language
    return _system_text(_Telling(session.spec_hash, view.viewer, language, scene.spec, view))


def question(scene: Scene, played: Played | None, *, beside: int = 0) -> str:
    """Return the user message: one JSON object, with the most stable parts first.

    Args:
        scene: the turn.
        played: the result of the turn if the narrator may know it; None while it may still act.
        beside: size of further constant parts of the prompt, such as tools.
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
    """Return the size of tools in a prompt in bytes; they are constant like the system text."""
    return size([[tool.name, tool.description, tool.input_schema] for tool in tools])


def facts_of(scene: Scene, played: Played | None) -> dict[str, Any]:
    """Return the facts of the turn that the audience may know.

    Args:
        scene: the turn.
        played: the result of the turn; None for the decisions so far.
    """
    facts = _facts(scene, played, *_GENEROSITY[0])
    return facts | ({"input": clipped(scene.input, _INPUT_CHARACTERS)} if scene.input else {})


def cache_plan(scene: Scene) -> CacheConfig:
    """Return the prompt-cache settings: the expected reuse is the number of remaining turns."""
    to_come = scene.spec.get("horizon", _EXPECTED_TURNS) - scene.turn
    return CacheConfig(expected_reuse=max(1, to_come))


# --- constant parts ---


@dataclass(frozen=True, slots=True)
class _Telling:
    """Cache key of a system text; the spec and the view follow from the other fields."""

    spec_hash: str
    viewer: str | None
    language: str | None
    spec: Mapping[str, Any] = field(compare=False, repr=False)
    view: SessionView = field(compare=False, repr=False)


@lru_cache(maxsize=_KEPT_TEXTS)
def _system_text(telling: _Telling) -> str:
    scenario = background(telling.spec, telling.view, telling.language)
    return f"{prompt('narrate')}\n{text_of(scenario)}\n"


# --- parts of the turn ---


def _fitting_facts(scene: Scene, played: Played | None, room: int) -> dict[str, Any]:
    """Return the facts truncated to `room` bytes, or the sparsest form."""
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
    """Return the legal actions that fit."""
    legal = set(scene.stage.board.legal_actions)
    actions = [_suggested(action) for action in scene.spec["actions"] if action["id"] in legal]
    return list(_first(actions[:_LEGAL_ACTIONS], room))


def _suggested(action: Mapping[str, Any]) -> dict[str, Any]:
    told = {"id": action["id"], "name": _short(action.get("name", "")), "params": list(action["params"])}
    return {key: value for key, value in told.items() if value}


def _history(scene: Scene, room: int) -> list[dict[str, Any]]:
    """Return the previous turns in at most `room` bytes; several short summaries beat one long one."""
    turns = summaries(scene)
    most, shorter = _newest(turns, room), _newest([in_brief(turn) for turn in turns], room)
    return most if len(most) >= min(_TURNS_AT_LENGTH, len(shorter)) else shorter


def _memories(scene: Scene) -> list[dict[str, Any]]:
    """Return the memories that the audience may read, oldest first."""
    return [
        {"turn": memory.turn, "whose": memory.owner, "about": memory.scope, "content": memory.content}
        for memory in recalled(scene.session.memories, scene.view.viewer)[-_MEMORIES:]
    ]


def _since_start(scene: Scene, tree: Any) -> Any:
    """Return the difference of the state to the start state in the system text, as a JSON merge patch."""
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
    """Return True if two values are equal as JSON; in Python alone `true` would equal 1."""
    return first == second and text_of(first) == text_of(second)


def _first(items: Sequence[Any], room: int) -> Iterator[Any]:
    """Yield the first items that fit together."""
    for item in items:
        room -= size(item) + 1
        if room < 0:
            return
        yield item


def _newest(items: Sequence[Any], room: int) -> list[Any]:
    """Return the last items that fit together, in their order."""
    return list(_first(items[::-1], room))[::-1]


def _short(text: str) -> str:
    return clipped(text, _NAME_CHARACTERS)
