"""What a narrator is told about a turn: only what the point of view may know, and never more than fits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.sessions.events import ActionResolved, encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.sessions.events import WorldResolved
    from peripety.sessions.mechanics import Played
    from peripety.sessions.model import Session
    from peripety.sessions.stage import Stage
    from peripety.sessions.visibility import SessionView

__all__ = ["Scene", "abridged", "cast_of", "facts_of", "history_of", "question_about"]

_INPUT_CHARACTERS = 4_000
_TOLD_CHARACTERS = 300
_LOG_LINES = 8
_CHANGES = 24
_CAST = 24
_VALUE_CHARACTERS = 500
_VIEW_CHARACTERS = 6_000
# How many items of a container and characters of a text are shown, from generous to sparse.
_GENEROSITY = ((64, 400), (24, 160), (12, 80), (4, 40))


@dataclass(frozen=True, slots=True)
class Scene:
    """A turn that is to be told.

    Attributes:
        spec: the scenario.
        view: what those may see for whom it is narrated.
        turn: the number of the turn.
        input: what the player said.
        session: the session before the turn.
        stage: the mechanics of the turn, which the narrator closes.
        narrated: narrations of the turns before that the point of view may read, oldest first.
    """

    spec: Mapping[str, Any]
    view: SessionView
    turn: int
    input: str
    session: Session
    stage: Stage
    narrated: tuple[str, ...]


def question_about(scene: Scene, played: Played | None) -> str:
    """The message that asks for the narration: one JSON object, what changes least standing first.

    Args:
        scene: the turn.
        played: how it ends, if the narrator may know; None while the actions of the turn are open.
    """
    tree = scene.stage.board.state.tree() if played is None else played.tree
    return json.dumps(
        {
            "scenario": _scenario(scene),
            "history": history_of(scene),
            "view": abridged(scene.view.state(tree), _VIEW_CHARACTERS),
            "facts": facts_of(scene, played),
        },
        ensure_ascii=False,
    )


def facts_of(scene: Scene, played: Played | None) -> dict[str, Any]:
    """What was decided in the turn, as far as the point of view may know it; see `question_about`."""
    events = scene.stage.board.events if played is None else played.events
    acts = [event for event in events if isinstance(event, ActionResolved)]
    parts: list[ActionResolved | WorldResolved] = [*acts]
    if played is not None:
        parts.append(played.world)
    changes = [change for part in parts for change in part.changes]
    log = [line.message for part in parts for line in part.log]
    names = {rule["id"]: rule.get("name", rule["id"]) for rule in _rules(scene.spec)}
    named = [{"id": act.action_id, "name": names[act.action_id], "params": dict(act.params)} for act in acts]
    told = {
        "turn": scene.turn,
        "actions": [action for action, act in zip(named, acts, strict=True) if act.accepted],
        "rejected": [
            {
                "name": action["name"],
                "reasons": [reason.message for reason in scene.view.failures(act.reasons)],
            }
            for action, act in zip(named, acts, strict=True)
            if not act.accepted
        ],
        "input": _clipped(scene.input, _INPUT_CHARACTERS),
        "changes": [_change(change) for change in encode(scene.view.changes(changes)[:_CHANGES])],
        "log": log[:_LOG_LINES],
    }
    if played is not None:
        event = played.world.event_id
        told["event"] = {"id": event, "name": names[event]} if event else None
        told["status"] = encode(played.world.status)
    return {name: value for name, value in told.items() if value or name not in {"rejected", "input"}}


def history_of(scene: Scene) -> list[str]:
    """The narrations before, in short."""
    return [_clipped(text, _TOLD_CHARACTERS) for text in scene.narrated]


def cast_of(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Who takes part, as far as there is room: id, name and kind."""
    entities = spec.get("entities", ())[:_CAST]
    return [{key: entity[key] for key in ("id", "name", "kind") if key in entity} for entity in entities]


def abridged(value: Any, limit: int) -> Any:
    """A JSON value in at most `limit` characters, long texts and containers cut with a mark; else None."""
    for items, characters in _GENEROSITY:
        shown = _sparse(value, items, characters)
        if len(json.dumps(shown, ensure_ascii=False)) <= limit:
            return shown
    return None


def _scenario(scene: Scene) -> dict[str, Any]:
    return {"name": scene.spec["name"], "entities": cast_of(scene.spec), "pov": scene.view.viewer}


def _rules(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [*spec["random_events"], *spec["actions"]]


def _change(change: Mapping[str, Any]) -> dict[str, Any]:
    shown = {key: change[key] for key in ("path", "cause")}
    values = {key: abridged(change[key], _VALUE_CHARACTERS) for key in ("before", "after") if key in change}
    return shown | values


def _sparse(value: Any, items: int, characters: int) -> Any:
    if isinstance(value, str):
        return _clipped(value, characters)
    if isinstance(value, list):
        shown = [_sparse(item, items, characters) for item in value[:items]]
        return [*shown, "\u2026"] if len(value) > items else shown
    if isinstance(value, dict):
        kept = {key: _sparse(value[key], items, characters) for key in list(value)[:items]}
        return kept | {"\u2026": "\u2026"} if len(value) > items else kept
    return value


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}\u2026"
