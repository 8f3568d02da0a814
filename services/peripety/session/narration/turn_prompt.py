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

from peripety.gateway.types.request import CacheConfig
from peripety.session.events import ActionResolved, encode_value
from peripety.session.memory import memories_for
from peripety.session.narration.scenario_prompt import load_prompt, render_scenario
from peripety.session.narration.turn_context import (
    json_size,
    list_last_rolls,
    shorten_summary,
    summarize_turns,
    to_json_text,
    truncate_json,
    truncate_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.gateway.types.message import Tool
    from peripety.session.events import WorldResolved
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.turn_transaction import TurnResult
    from peripety.session.visibility import ViewerProjection


_MIN_BYTES = 1_400
"""Minimum size of the user message, so that it is useful even for the smallest scenario."""
_SHARE_OF_STATIC = 0.24
_SHARES = {"input": 0.2, "facts": 0.45, "view": 0.3, "legal_actions": 0.1, "memories": 0.1}
"""Maximum share of each part, in the order in which they are filled.

The player's input may exceed its share, but the other parts do not shrink further for it.
"""
_INPUT_CHARACTERS = 4_000
_NAME_CHARACTERS = 120
_REASON_CHARACTERS = 240
_MAX_LEGAL_ACTIONS = 16
_MAX_MEMORIES = 16
_CACHED_TEXTS = 64
_LONG_SUMMARIES = 3
# Limits on changes, log lines and bytes of their values, from generous to sparse.
_DETAIL_LEVELS = ((24, 8, 400), (16, 8, 160), (12, 6, 80), (8, 4, 60), (5, 3, 48), (3, 2, 40), (1, 1, 40))
_EXPECTED_TURNS = 50


def render_system_text(scene: NarrationContext) -> str:
    """Return the system text: instructions and scenario, identical in every turn of a session."""
    session, view = scene.session, scene.view
    language = session.narrator.language
    return _cached_system_text(_SystemTextKey(session.spec_hash, view.viewer, language, scene.spec, view))


def build_user_message(scene: NarrationContext, played: TurnResult | None, *, static_bytes: int = 0) -> str:
    """Return the user message: one JSON object, with the most stable parts first.

    Args:
        scene: the turn.
        played: the result of the turn if the narrator may know it; None while it may still act.
        static_bytes: size of further constant parts of the prompt, such as tools.
    """
    room = max(_MIN_BYTES, int((len(render_system_text(scene).encode()) + static_bytes) * _SHARE_OF_STATIC))
    tree = scene.speculation.transaction.state.tree() if played is None else played.tree
    parts: dict[str, Callable[[int], Any]] = {
        "facts": lambda most: _truncated_facts(scene, played, most),
        "view": lambda most: truncate_json(_state_patch(scene, tree), most),
        "legal_actions": lambda most: _describe_legal_actions(scene, most) if played is None else None,
        "memories": lambda most: _last_fitting(_readable_memories(scene), most),
    }
    said = truncate_text(scene.input, _INPUT_CHARACTERS)
    told: dict[str, Any] = {"rolls": list_last_rolls(scene)}
    left = room - json_size(told) - min(json_size(said), int(room * _SHARES["input"]))
    for name, part in parts.items():
        told[name] = part(min(left, int(room * _SHARES[name])))
        left -= json_size({name: told[name]})
    told["history"] = _summarize_history(scene, left)
    told["facts"] |= {"input": said} if said else {}
    order = ("memories", "legal_actions", "history", "rolls", "view", "facts")
    return to_json_text({name: told[name] for name in order if told[name] is not None})


def static_size(tools: Iterable[Tool]) -> int:
    """Return the size of tools in a prompt in bytes; they are constant like the system text."""
    return json_size([[tool.name, tool.description, tool.input_schema] for tool in tools])


def collect_facts(scene: NarrationContext, played: TurnResult | None) -> dict[str, Any]:
    """Return the facts of the turn that the audience may know.

    Args:
        scene: the turn.
        played: the result of the turn; None for the decisions so far.
    """
    facts = _facts(scene, played, *_DETAIL_LEVELS[0])
    return facts | ({"input": truncate_text(scene.input, _INPUT_CHARACTERS)} if scene.input else {})


def cache_plan(scene: NarrationContext) -> CacheConfig:
    """Return the prompt-cache settings: the expected reuse is the number of remaining turns."""
    to_come = scene.spec.get("horizon", _EXPECTED_TURNS) - scene.turn
    return CacheConfig(expected_reuse=max(1, to_come))


# --- constant parts ---


@dataclass(frozen=True, slots=True)
class _SystemTextKey:
    """Cache key of a system text; the spec and the view follow from the other fields."""

    spec_hash: str
    viewer: str | None
    language: str | None
    spec: Mapping[str, Any] = field(compare=False, repr=False)
    view: ViewerProjection = field(compare=False, repr=False)


@lru_cache(maxsize=_CACHED_TEXTS)
def _cached_system_text(telling: _SystemTextKey) -> str:
    scenario = render_scenario(telling.spec, telling.view, telling.language)
    return f"{load_prompt('narrate')}\n{to_json_text(scenario)}\n"


# --- parts of the turn ---


def _truncated_facts(scene: NarrationContext, played: TurnResult | None, room: int) -> dict[str, Any]:
    """Return the facts truncated to `room` bytes, or the sparsest form."""
    for limits in _DETAIL_LEVELS:
        facts = _facts(scene, played, *limits)
        if json_size(facts) <= room:
            break
    return facts


def _facts(
    scene: NarrationContext,
    played: TurnResult | None,
    changes: int,
    lines: int,
    value_bytes: int,
) -> dict[str, Any]:
    events = scene.speculation.transaction.events if played is None else played.events
    acts = [event for event in events if isinstance(event, ActionResolved)]
    parts: list[ActionResolved | WorldResolved] = [*acts, *([] if played is None else [played.world])]
    moved = scene.view.project_changes(change for part in parts for change in part.changes)
    names = scene.action_names
    told = {
        "turn": scene.turn,
        "actions": [_describe_accepted(act, names, value_bytes) for act in acts if act.accepted],
        "rejected": [_describe_rejected(act, names, scene.view) for act in acts if not act.accepted],
        "changes": [_describe_change(change, value_bytes) for change in encode_value(moved[:changes])],
        "log": [truncate_text(line.message, value_bytes) for part in parts for line in part.log][:lines],
    }
    if played is not None:
        event_id = played.world.event_id
        told["event"] = (
            {"id": event_id, "name": _short_name(scene.event_names[event_id])} if event_id else None
        )
        told["status"] = encode_value(played.world.status)
    return {name: value for name, value in told.items() if value or name != "rejected"}


def _describe_accepted(act: ActionResolved, names: Mapping[str, str], value_bytes: int) -> dict[str, Any]:
    params = {name: truncate_json(value, value_bytes) for name, value in act.params.items()}
    return {"id": act.action_id, "name": _short_name(names[act.action_id]), "params": params}


def _describe_rejected(
    act: ActionResolved,
    names: Mapping[str, str],
    view: ViewerProjection,
) -> dict[str, Any]:
    reasons = [
        truncate_text(reason.message, _REASON_CHARACTERS) for reason in view.project_failures(act.reasons)
    ]
    return {"name": _short_name(names[act.action_id]), "reasons": reasons}


def _describe_change(change: Mapping[str, Any], value_bytes: int) -> dict[str, Any]:
    shown = {key: change[key] for key in ("path", "cause")}
    return shown | {
        key: truncate_json(change[key], value_bytes) for key in ("before", "after") if key in change
    }


def _describe_legal_actions(scene: NarrationContext, room: int) -> list[dict[str, Any]]:
    """Return the legal actions that fit."""
    legal = set(scene.speculation.transaction.legal_actions)
    actions = [_describe_action(action) for action in scene.spec["actions"] if action["id"] in legal]
    return list(_take_fitting(actions[:_MAX_LEGAL_ACTIONS], room))


def _describe_action(action: Mapping[str, Any]) -> dict[str, Any]:
    told = {"id": action["id"], "name": _short_name(action.get("name", "")), "params": list(action["params"])}
    return {key: value for key, value in told.items() if value}


def _summarize_history(scene: NarrationContext, room: int) -> list[dict[str, Any]]:
    """Return the previous turns in at most `room` bytes; several short summaries beat one long one."""
    turns = summarize_turns(scene)
    most, shorter = _last_fitting(turns, room), _last_fitting([shorten_summary(turn) for turn in turns], room)
    return most if len(most) >= min(_LONG_SUMMARIES, len(shorter)) else shorter


def _readable_memories(scene: NarrationContext) -> list[dict[str, Any]]:
    """Return the memories that the audience may read, oldest first."""
    return [
        {"turn": memory.turn, "whose": memory.owner, "about": memory.scope, "content": memory.content}
        for memory in memories_for(scene.session.memories, scene.view.viewer)[-_MAX_MEMORIES:]
    ]


def _state_patch(scene: NarrationContext, tree: Any) -> Any:
    """Return the difference of the state to the start state in the system text, as a JSON merge patch."""
    return _merge_patch(scene.view.project_state(scene.spec["state"]), scene.view.project_state(tree))


def _merge_patch(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(key for key in before if key not in after)
    for key, value in after.items():
        known = before.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            inner = _merge_patch(known, value)
            patch |= {key: inner} if inner else {}
        elif key not in before or not _is_same_json(known, value):
            patch[key] = value
    return patch


def _is_same_json(first: Any, second: Any) -> bool:
    """Return True if two values are equal as JSON; in Python alone `true` would equal 1."""
    return first == second and to_json_text(first) == to_json_text(second)


def _take_fitting(items: Sequence[Any], room: int) -> Iterator[Any]:
    """Yield the first items that fit together."""
    for item in items:
        room -= json_size(item) + 1
        if room < 0:
            return
        yield item


def _last_fitting(items: Sequence[Any], room: int) -> list[Any]:
    """Return the last items that fit together, in their order."""
    return list(_take_fitting(items[::-1], room))[::-1]


def _short_name(text: str) -> str:
    return truncate_text(text, _NAME_CHARACTERS)
