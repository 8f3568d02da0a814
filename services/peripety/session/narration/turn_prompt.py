"""The narrator's prompt: system text, history, and the turn, limited to what its audience may know.

The system text is the same for the life of a session, and the history only grows, so most of a prompt is read
from the provider's cache. What changes in every turn is last. The size of each part is limited by the room
that the model's context window leaves, whatever the size of the state: the last turn of a long session costs
as much as its fiftieth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import CacheConfig
from peripety.session.events import ActionResolved
from peripety.session.narration.claims.checker import ClaimChecker, is_checkable
from peripety.session.narration.claims.conduct import PLAYING_ON, find_misdeeds
from peripety.session.narration.claims.record import turn_facts, undo_changes
from peripety.session.narration.scenario_prompt import load_prompt, render_scenario
from peripety.session.narration.turn_context import (
    describe_facts,
    describe_story,
    json_size,
    key_events,
    short_name,
    take_fitting,
    to_json_text,
    truncate_json,
    truncate_text,
)
from peripety.session.narration.turn_history import render_history
from peripety.session.types import Resolution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.session.events import Event
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.turn_transaction import TurnResult
    from peripety.session.visibility import ViewerProjection


_INPUT_CHARACTERS = 4_000
_SMALL_INPUT_CHARACTERS = 1_000
_MAX_NOTICED = 3
_NOTICED_CHARACTERS = 120
_NOTICED_RULES = {
    "machinery": "no words of the program",
    "thoughts": "no thoughts of others, only their deeds and words",
    "playing_on": "leave decisions, words and feelings of the player to the player",
    "tense": "the tense of the run does not change",
    "invented": "give the player nothing that the scenario does not have",
}
_CACHED_TEXTS = 64
_EXPECTED_TURNS = 50
_TOLD_SECTIONS = ("clues", "statements")


def render_system_text(scene: NarrationContext) -> str:
    """Return the system text: instructions and scenario, identical in every turn of a session."""
    session, view = scene.session, scene.view
    language = session.narrator.language
    key = _SystemTextKey(session.spec_hash, view.viewer, language, scene.room.is_small, scene.spec, view)
    return _cached_system_text(key)


def build_messages(scene: NarrationContext, played: TurnResult | None) -> tuple[ChatMessage, ...]:
    """Return the messages: the history, then one JSON object with the turn, the stable parts first.

    Args:
        scene: the turn.
        played: the result of the turn if the narrator may know it; None while it may still act.
    """
    tree = scene.speculation.transaction.state.tree() if played is None else played.tree
    opening = scene.view.project_state(scene.speculation.transaction.opening_state.tree())
    story = describe_story(scene.spec, scene.view.viewer, scene.view.project_state(tree), opening)
    history = render_history(scene, scene.room.facts // 3)
    told = {
        "noticed": find_noticed(scene) or None,
        "memories": history.memories or None,
        "facts": collect_facts(scene, played, scene.room.facts),
        **_limit_story(story, scene.room.story),
        "legal_actions": _describe_legal_actions(scene, played),
        "view": _limit_view(_state_patch(scene, tree), scene.room.view),
    }
    turn = to_json_text({name: value for name, value in told.items() if value is not None})
    return (*history.messages, ChatMessage.user(turn))


def collect_facts(
    scene: NarrationContext,
    played: TurnResult | None,
    max_bytes: int | None = None,
) -> dict[str, Any]:
    """Return the facts of the turn that the audience may know.

    Args:
        scene: the turn.
        played: the result of the turn; None for the decisions so far.
        max_bytes: size limit of all but the player's input; None for no limit.
    """
    decided = scene.speculation.transaction.events
    events: tuple[Event, ...] = decided if played is None else (*played.actions, played.world)
    facts = describe_facts(scene.view, scene.names, scene.turn, events, max_bytes, scene.happened_before)
    limit = _SMALL_INPUT_CHARACTERS if scene.room.is_small else _INPUT_CHARACTERS
    return facts | ({"input": truncate_text(scene.input, limit)} if scene.input else {})


def find_noticed(scene: NarrationContext) -> list[dict[str, str]]:
    """Return sentences of the last narration that look wrong, with the fact or the rule about each.

    They may contradict the record of that turn, or be misconduct. Good prose may look the same, so they cost
    nothing: the narrator only reads them.
    A small prompt has no room for them.
    """
    if scene.room.is_small or not scene.recent_turns:
        return []
    last = scene.recent_turns[-1]
    accepted, _, committed = key_events(last)
    language = scene.session.narrator.language
    is_own = committed.resolution is not Resolution.SERVER_RESOLVED and scene.view.can_read_narration(
        last.pov
    )
    if not is_own or not is_checkable(committed.narrative, language):
        return []
    tried = {event.action_id for event in last.events if isinstance(event, ActionResolved)}
    chosen = [str(one.get("name") or one["id"]) for one in scene.spec["actions"] if one["id"] in tried]
    found = find_misdeeds(scene.spec, scene.view.viewer, committed.narrative, chosen)
    # The player's own words may be narrated as deeds.
    kept = [one for one in found if not (accepted.input and one.kind == PLAYING_ON)]
    after = scene.speculation.transaction.opening_state.tree()
    before = undo_changes(after, last.events)
    checker = ClaimChecker(turn_facts(scene.spec, scene.view, before, after, last.events))
    noticed = [
        *(
            (one.quotation, f"narrate the facts: {one.expected}")
            for one in checker.find_likely(committed.narrative)
        ),
        *((one.quotation, _NOTICED_RULES[one.kind]) for one in kept),
    ]
    return [
        {"sentence": truncate_text(quotation, _NOTICED_CHARACTERS), "rule": rule}
        for quotation, rule in noticed[:_MAX_NOTICED]
    ]


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
    is_small: bool
    spec: Mapping[str, Any] = field(compare=False, repr=False)
    view: ViewerProjection = field(compare=False, repr=False)


@lru_cache(maxsize=_CACHED_TEXTS)
def _cached_system_text(telling: _SystemTextKey) -> str:
    scenario = render_scenario(telling.spec, telling.view, telling.language, is_small=telling.is_small)
    return f"{load_prompt('narrate')}\n{to_json_text(scenario)}\n"


# --- parts of the turn ---


def _limit_story(story: Mapping[str, Any], max_bytes: int) -> dict[str, Any]:
    """Truncate the place last, because no other part of the prompt describes it."""
    place = {key: value for key, value in story.items() if key == "place"}
    shown = truncate_json(place, max_bytes) or {}
    rest = {key: value for key, value in story.items() if key != "place"}
    return shown | (truncate_json(rest, max(max_bytes - json_size(shown), max_bytes // 3)) or {})


def _describe_legal_actions(scene: NarrationContext, played: TurnResult | None) -> list[dict[str, Any]]:
    """Return the actions that are legal now, or after the turn if it is decided."""
    legal = set(scene.speculation.transaction.legal_actions if played is None else played.legal_actions)
    actions = [_describe_action(action) for action in scene.spec["actions"] if action["id"] in legal]
    room = scene.room.legal_actions
    return actions if room is None else list(take_fitting(actions, room))


def _describe_action(action: Mapping[str, Any]) -> dict[str, Any]:
    told = {"id": action["id"], "name": short_name(action.get("name", "")), "params": list(action["params"])}
    return {key: value for key, value in told.items() if value}


def _state_patch(scene: NarrationContext, tree: Any) -> Any:
    """Return the difference of the state to the start state in the system text, as a JSON merge patch."""
    return _merge_patch(scene.view.project_state(scene.spec["state"]), scene.view.project_state(tree))


def _limit_view(patch: dict[str, Any], max_bytes: int) -> Any:
    """Truncate a view; texts that the player found or heard are cut last, because a story depends on them."""
    told = {section: patch[section] for section in _TOLD_SECTIONS if section in patch}
    rest = {section: value for section, value in patch.items() if section not in told}
    shown = truncate_json(rest, max_bytes - json_size(told)) if told else None
    return truncate_json(patch, max_bytes) if shown is None else {**shown, **told}


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
