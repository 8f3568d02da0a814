"""Context of a narration: summaries of past turns, truncated views.

Truncation of JSON values to a size limit, so that prompts do not grow with the state.

Summaries of previous turns, generated from their records.

Turn context: the turn to narrate, and all data that its narration may use.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.scenario.action_tools import PublicScenario
from peripety.scenario.rule_graph.graph import find_read_paths
from peripety.scenario.rule_text import format_path
from peripety.session.events import Accepted, ActionResolved, Committed, Rolled, WorldResolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.engine import Change, RollResult
    from peripety.scenario.rule_graph.graph import Path
    from peripety.session.speculation import SpeculativeTurn
    from peripety.session.types import CommittedTurn, Session
    from peripety.session.visibility import ViewerProjection


# Limits on items of a container and characters of a string, from generous to sparse.
_DETAIL_LEVELS = (
    (64, 400),
    (48, 240),
    (32, 160),
    (24, 120),
    (16, 80),
    (12, 60),
    (8, 48),
    (6, 40),
    (4, 32),
    (2, 24),
    (1, 24),
)
_ELLIPSIS = "\u2026"


def to_json_text(value: Any) -> str:
    """Encode a JSON value as sent to a model."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_size(value: Any) -> int:
    """Return the size of a JSON value in a prompt, in bytes."""
    return len(to_json_text(value).encode())


def truncate_text(text: str, limit: int) -> str:
    """Truncate a text to `limit` characters and mark the cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}{_ELLIPSIS}"


def truncate_json(value: Any, max_bytes: int) -> Any:
    """Truncate long strings and containers until a value fits into `max_bytes`; None if impossible."""
    for items, characters in _DETAIL_LEVELS:
        shown = _limit_items(value, items, characters)
        if json_size(shown) <= max_bytes:
            return shown
    return None


def _limit_items(value: Any, items: int, characters: int) -> Any:
    if isinstance(value, str):
        return truncate_text(value, characters)
    if isinstance(value, list):
        # Lists grow at the end, so both ends are shown.
        head, tail = items - items // 2, items // 2
        shown = value if len(value) <= items else [*value[:head], _ELLIPSIS, *value[len(value) - tail :]]
        return [_limit_items(item, items, characters) for item in shown]
    if isinstance(value, dict):
        kept = {key: _limit_items(value[key], items, characters) for key in list(value)[:items]}
        return kept | {_ELLIPSIS: _ELLIPSIS} if len(value) > items else kept
    return value


HISTORY_TURNS = 8
"""Maximum number of previous turns in a prompt."""


@dataclass(frozen=True, slots=True)
class ScenarioRules:
    """One version of a scenario, as a cache key for values derived from its rules alone."""

    spec_hash: str
    spec: Mapping[str, Any] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NarrationContext:
    """The turn to narrate.

    Attributes:
        spec: the scenario.
        view: the view of the audience.
        turn: number of the turn.
        input: the player's input.
        session: the session before the turn.
        speculation: the mechanics of the turn, which the narrator closes.
        previous_turns: the complete previous turns, oldest first.
    """

    spec: Mapping[str, Any]
    view: ViewerProjection
    turn: int
    input: str
    session: Session
    speculation: SpeculativeTurn
    previous_turns: tuple[CommittedTurn, ...]

    @property
    def rules(self) -> ScenarioRules:
        """The version of the scenario."""
        return ScenarioRules(self.session.spec_hash, self.spec)

    @property
    def action_names(self) -> dict[str, str]:
        """Names of the actions by id; an event may have the same id."""
        return _names_by_id(self.spec["actions"])

    @property
    def event_names(self) -> dict[str, str]:
        """Names of the random events by id."""
        return _names_by_id(self.spec["random_events"])


def _names_by_id(rules: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {rule["id"]: rule.get("name", rule["id"]) for rule in rules}


_NARRATION_CHARACTERS = 240
_INPUT_CHARACTERS = 120
_MAX_CHANGES = 4
_SHORT_CHARACTERS = 60
_SHORT_CHANGES = 2
_CACHED_RULES = 64
_VALUE_BYTES = 40


def summarize_turns(scene: NarrationContext) -> list[dict[str, Any]]:
    """Return summaries of the previous turns, oldest first, limited to what the audience may know."""
    matters, actions, events = _decisive_paths(scene.rules), scene.action_names, scene.event_names
    return [
        _summarize_turn(turn, scene.view, matters, actions, events)
        for turn in scene.previous_turns[-HISTORY_TURNS:]
    ]


def shorten_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten a summary."""
    shorter = {
        key: truncate_text(summary[key], _SHORT_CHARACTERS) for key in ("said", "told") if key in summary
    }
    changed = dict(islice(summary.get("changed", {}).items(), _SHORT_CHANGES))
    return {**summary, **shorter, **({"changed": changed} if changed else {})}


def list_narrations(scene: NarrationContext) -> list[str]:
    """Return the truncated narrations of previous turns that the audience has seen, oldest first."""
    told = [
        _key_events(turn)[2]
        for turn in scene.previous_turns[-HISTORY_TURNS:]
        if scene.view.can_read_narration(turn.pov)
    ]
    return [truncate_text(committed.narrative, _NARRATION_CHARACTERS) for committed in told]


def list_last_rolls(scene: NarrationContext) -> list[dict[str, Any]]:
    """Return the dice of the previous turn.

    Its narrator may have requested them without seeing the result.
    """
    last = [turn for turn in scene.previous_turns[-1:] if scene.view.can_read_narration(turn.pov)]
    return [format_roll(event.roll) for turn in last for event in turn.events if isinstance(event, Rolled)]


def format_roll(roll: RollResult) -> dict[str, Any]:
    """Format a die roll for a prompt."""
    told = {"kind": roll.kind, "target": roll.target, "difficulty": roll.difficulty, "face": roll.roll}
    return {key: value for key, value in told.items() if value is not None} | {"success": roll.success}


def _summarize_turn(
    turn: CommittedTurn,
    view: ViewerProjection,
    matters: frozenset[Path],
    actions: Mapping[str, str],
    events: Mapping[str, str],
) -> dict[str, Any]:
    accepted, world, committed = _key_events(turn)
    hears = view.can_read_narration(turn.pov)
    acts = [event for event in turn.events if isinstance(event, ActionResolved) and event.accepted]
    told = {
        "did": [truncate_text(actions[act.action_id], _INPUT_CHARACTERS) for act in acts],
        "said": truncate_text(accepted.input, _INPUT_CHARACTERS) if hears else "",
        "event": truncate_text(events[world.event_id], _INPUT_CHARACTERS) if world.event_id else "",
        "changed": dict(_net_changes(view.project_changes(committed.changes), matters)),
        "told": truncate_text(committed.narrative, _NARRATION_CHARACTERS) if hears else "",
    }
    return {"turn": turn.turn} | {key: value for key, value in told.items() if value}


def _key_events(turn: CommittedTurn) -> tuple[Accepted, WorldResolved, Committed]:
    """Return the first event, the world's event and the last event, which every turn has once."""
    accepted = next(event for event in turn.events if isinstance(event, Accepted))
    world = next(event for event in turn.events if isinstance(event, WorldResolved))
    committed = next(event for event in turn.events if isinstance(event, Committed))
    return accepted, world, committed


def _net_changes(changes: Iterable[Change], matters: frozenset[Path]) -> list[tuple[str, list[Any]]]:
    """Return the net changes of a turn; paths that end conditions depend on come first."""
    moved: dict[str, tuple[Any, Any]] = {}
    for change in changes:
        moved[change.path] = (moved.get(change.path, (change.before, None))[0], change.after)
    of_weight = sorted(moved, key=lambda path: engine.parse_path(path) not in matters)
    return [
        (format_path(path), [_truncate_value(value) for value in moved[path]])
        for path in of_weight[:_MAX_CHANGES]
    ]


def _truncate_value(value: Any) -> Any:
    return None if value is engine.ABSENT else truncate_json(value, _VALUE_BYTES)


@lru_cache(maxsize=_CACHED_RULES)
def _decisive_paths(rules: ScenarioRules) -> frozenset[Path]:
    """Return the paths that the public part of the end conditions depends on."""
    public = PublicScenario(rules.spec)
    ends = (*rules.spec["loss_conditions"], *rules.spec.get("win_conditions", ()))
    conditions = (
        public.filter_action({"preconditions": end["when"], "effects": ()}).preconditions for end in ends
    )
    return frozenset(path for condition in conditions for path in find_read_paths(condition))
