"""Context of a narration: the turn to narrate, its facts, and values truncated to a size limit.

The facts of a turn are what the engine decided, projected to one viewer. The prompt of the turn and the
history of later prompts describe them in the same way.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.rule_text import format_path
from peripety.scenario.action_tools import PublicScenario
from peripety.scenario.rule_graph.graph import find_read_paths
from peripety.session.events import Accepted, ActionResolved, Committed, WorldResolved, encode_value
from peripety.session.narration.prompt_room import PromptRoom

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.engine import Change, RollResult, Status
    from peripety.scenario.rule_graph.graph import Path
    from peripety.session.events import Event
    from peripety.session.narration.turn_history import TurnText
    from peripety.session.speculation import SpeculativeTurn
    from peripety.session.types import CommittedTurn, Session
    from peripety.session.visibility import ViewerProjection


# Limits on items of a container and characters of a string, from generous to sparse.
_DETAIL_LEVELS = (
    (64, 1_200),
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
    """Encode a JSON value as sent to a model; fractions have at most twelve digits."""
    return json.dumps(_shorten_numbers(value), ensure_ascii=False, separators=(",", ":"))


def _shorten_numbers(value: Any) -> Any:
    if isinstance(value, float) and not value.is_integer():
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: _shorten_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shorten_numbers(item) for item in value]
    return value


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


RECENT_TURNS = 8
"""Number of earlier turns of which all events are at hand."""


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
        recent_turns: the last turns, oldest first.
        history: the turns of the prompt, oldest first, limited to what the audience may know.
        room: the room of the prompt.
        load_earlier_turns: loads all turns before this one; None for the recent ones.
        words_only: True if the turn has nothing but the player's words, so that it can be left unplayed.
    """

    spec: Mapping[str, Any]
    view: ViewerProjection
    turn: int
    input: str
    session: Session
    speculation: SpeculativeTurn
    recent_turns: tuple[CommittedTurn, ...] = ()
    history: tuple[TurnText, ...] = ()
    room: PromptRoom = field(default_factory=partial(PromptRoom.for_window, 0))
    words_only: bool = False
    load_earlier_turns: Callable[[], Awaitable[Sequence[CommittedTurn]]] | None = None

    async def load_turns(self) -> Sequence[CommittedTurn]:
        """Return all turns before this one, oldest first."""
        return self.recent_turns if self.load_earlier_turns is None else await self.load_earlier_turns()

    @property
    def has_actors(self) -> bool:
        """True if people are voiced by calls of their own; a small context window has no room for that."""
        return self.session.narrator.actors and not self.room.is_small

    @property
    def happened_before(self) -> Counter[str]:
        """Number of turns of the history with an event of a name, or with a line of the log."""
        return Counter(text for turn in self.history for text in turn.happened)

    @property
    def rules(self) -> ScenarioRules:
        """The version of the scenario."""
        return ScenarioRules(self.session.spec_hash, self.spec)

    @property
    def names(self) -> TurnNames:
        """Names of the scenario's rules."""
        return turn_names(self.rules)


@dataclass(frozen=True, slots=True)
class TurnNames:
    """Names for texts about turns of one version of a scenario.

    Attributes:
        actions: names of the actions by id; an event may have the same id.
        events: names of the random events by id.
        decisive: the paths that the public part of the end conditions depends on.
        epilogues: the epilogues of the endings by id.
        speakers: the paths of the statements, each with the entity that makes it.
    """

    actions: Mapping[str, str]
    events: Mapping[str, str]
    decisive: frozenset[Path]
    epilogues: Mapping[str, Any]
    speakers: Mapping[str, str]


_NARRATION_CHARACTERS = 240
_EPILOGUE_CHARACTERS = 900
_NAME_CHARACTERS = 120
_REASON_CHARACTERS = 240
_CACHED_RULES = 64
_VALUE_BYTES = 40
_NOTHING_BEFORE: Mapping[str, int] = MappingProxyType({})
# Limits on changes, log lines and bytes of their values, from generous to sparse.
_FACT_LEVELS = ((24, 8, 400), (16, 8, 160), (12, 6, 80), (8, 4, 60), (5, 3, 48), (3, 2, 40), (1, 1, 40))


@lru_cache(maxsize=_CACHED_RULES)
def turn_names(rules: ScenarioRules) -> TurnNames:
    """Return the names of a version of a scenario."""
    spec = rules.spec
    return TurnNames(
        _names_by_id(spec["actions"]),
        _names_by_id(spec["random_events"]),
        _decisive_paths(spec),
        spec.get("epilogues", {}),
        {
            f"state.statements.{name}": statement["by"]
            for name, statement in spec.get("statements", {}).items()
        },
    )


def _names_by_id(rules: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {rule["id"]: rule.get("name", rule["id"]) for rule in rules}


def _decisive_paths(spec: Mapping[str, Any]) -> frozenset[Path]:
    public = PublicScenario(spec)
    ends = (*spec["loss_conditions"], *spec.get("win_conditions", ()))
    conditions = (
        public.filter_action({"preconditions": end["when"], "effects": ()}).preconditions for end in ends
    )
    return frozenset(path for condition in conditions for path in find_read_paths(condition))


def list_narrations(scene: NarrationContext) -> list[str]:
    """Return the truncated narrations of recent turns that the audience has seen, oldest first."""
    told = [key_events(turn)[2] for turn in scene.recent_turns if scene.view.can_read_narration(turn.pov)]
    return [truncate_text(committed.narrative, _NARRATION_CHARACTERS) for committed in told]


def format_roll(roll: RollResult) -> dict[str, Any]:
    """Format a die roll for a prompt."""
    told = {"kind": roll.kind, "target": roll.target, "difficulty": roll.difficulty, "face": roll.roll}
    return {key: value for key, value in told.items() if value is not None} | {"success": roll.success}


def key_events(turn: CommittedTurn) -> tuple[Accepted, WorldResolved, Committed]:
    """Return the first event, the world's event and the last event, which every turn has once."""
    accepted = next(event for event in turn.events if isinstance(event, Accepted))
    world = next(event for event in turn.events if isinstance(event, WorldResolved))
    committed = next(event for event in turn.events if isinstance(event, Committed))
    return accepted, world, committed


def net_changes(changes: Iterable[Change], decisive: frozenset[Path]) -> list[tuple[str, list[Any]]]:
    """Return the net changes of a turn; paths that end conditions depend on come first."""
    moved: dict[str, tuple[Any, Any]] = {}
    for change in changes:
        moved[change.path] = (moved.get(change.path, (change.before, None))[0], change.after)
    by_weight = sorted(moved, key=lambda path: engine.parse_path(path) not in decisive)
    return [(format_path(path), [_truncate_value(value) for value in moved[path]]) for path in by_weight]


def _truncate_value(value: Any) -> Any:
    return None if value is engine.ABSENT else truncate_json(value, _VALUE_BYTES)


def describe_facts(
    view: ViewerProjection,
    names: TurnNames,
    turn: int,
    events: Iterable[Event],
    max_bytes: int | None = None,
    happened_before: Mapping[str, int] = _NOTHING_BEFORE,
) -> dict[str, Any]:
    """Return the facts of a turn that a viewer may know.

    Args:
        view: the view.
        names: names of the scenario's rules.
        turn: number of the turn.
        events: events of the turn; without the world's step, the turn is still open.
        max_bytes: size limit; the sparsest form may exceed it. None for the most generous form.
        happened_before: how often events and lines of the log, by their texts, were in earlier turns.
    """
    parts = [event for event in events if isinstance(event, ActionResolved | WorldResolved)]
    for limits in _FACT_LEVELS:
        facts = _facts(view, names, turn, parts, *limits)
        facts |= _describe_repetitions(parts, names, happened_before, *limits[1:])
        if max_bytes is None or json_size(facts) <= max_bytes:
            break
    ends = [part.status for part in parts if isinstance(part, WorldResolved)]
    return facts | (describe_epilogue(names, ends[-1]) if ends else {})


def list_happened(events: Iterable[Event], names: TurnNames) -> tuple[str, ...]:
    """Return the name of the random event of a turn and the lines of its log, each once."""
    parts = [event for event in events if isinstance(event, ActionResolved | WorldResolved)]
    ids = [part.event_id for part in parts if isinstance(part, WorldResolved) and part.event_id]
    texts = [
        *(names.events[event_id] for event_id in ids),
        *(line.message for part in parts for line in part.log),
    ]
    return tuple(dict.fromkeys(texts))


def count_repetitions(texts: Iterable[str], happened_before: Mapping[str, int]) -> dict[str, int]:
    """Return the texts that are not new, each with the number of turns that had it, this one included."""
    return {text: happened_before[text] + 1 for text in texts if happened_before.get(text)}


def _describe_repetitions(
    parts: Sequence[ActionResolved | WorldResolved],
    names: TurnNames,
    happened_before: Mapping[str, int],
    lines: int,
    value_bytes: int,
) -> dict[str, Any]:
    counted = count_repetitions(list_happened(parts, names), happened_before)
    told = {truncate_text(text, value_bytes): count for text, count in [*counted.items()][: lines + 1]}
    return {"repeated": told} if told else {}


def describe_epilogue(names: TurnNames, status: Status) -> dict[str, str]:
    """Return the epilogue of the ending that a run has reached; empty without one."""
    text = engine.read_epilogue(names.epilogues, status)
    return {"epilogue": truncate_text(text, _EPILOGUE_CHARACTERS)} if text else {}


def _facts(
    view: ViewerProjection,
    names: TurnNames,
    turn: int,
    parts: Sequence[ActionResolved | WorldResolved],
    changes: int,
    lines: int,
    value_bytes: int,
) -> dict[str, Any]:
    acts = [part for part in parts if isinstance(part, ActionResolved)]
    moved = view.project_changes(change for part in parts for change in part.changes)
    told = {
        "turn": turn,
        "actions": [_describe_accepted(act, names.actions, value_bytes) for act in acts if act.accepted],
        "rejected": [_describe_rejected(act, names.actions, view) for act in acts if not act.accepted],
        "changes": [
            _describe_change(change, value_bytes) | _describe_speaker(change, names)
            for change in encode_value(moved[:changes])
        ],
        "log": [truncate_text(line.message, value_bytes) for part in parts for line in part.log][:lines],
    }
    for world in parts:
        if isinstance(world, WorldResolved):
            event_id = world.event_id
            event = {"id": event_id, "name": short_name(names.events[event_id])} if event_id else None
            # The epilogue is a fact of its own.
            told |= {"event": event, "status": encode_value(replace(world.status, epilogue=None))}
    return {name: value for name, value in told.items() if value or name != "rejected"}


def _describe_accepted(act: ActionResolved, names: Mapping[str, str], value_bytes: int) -> dict[str, Any]:
    params = {name: truncate_json(value, value_bytes) for name, value in act.params.items()}
    return {"id": act.action_id, "name": short_name(names[act.action_id]), "params": params}


def _describe_rejected(
    act: ActionResolved,
    names: Mapping[str, str],
    view: ViewerProjection,
) -> dict[str, Any]:
    reasons = [
        truncate_text(reason.message, _REASON_CHARACTERS) for reason in view.project_failures(act.reasons)
    ]
    return {"name": short_name(names[act.action_id]), "reasons": reasons}


def _describe_change(change: Mapping[str, Any], value_bytes: int) -> dict[str, Any]:
    shown = {key: change[key] for key in ("path", "cause")}
    return shown | {
        key: truncate_json(change[key], value_bytes) for key in ("before", "after") if key in change
    }


def _describe_speaker(change: Mapping[str, Any], names: TurnNames) -> dict[str, str]:
    """Return who made the statement that a change is; empty for any other change."""
    speaker = names.speakers.get(format_path(change["path"]))
    return {"by": speaker} if speaker else {}


def describe_story(
    spec: Mapping[str, Any],
    viewer: str | None,
    seen: Mapping[str, Any],
    seen_before: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the place, statements and promises that a viewer knows of; empty without such keys.

    Args:
        spec: the scenario.
        viewer: the entity; without one, the place is that of the only playable entity.
        seen: the state that the viewer sees.
        seen_before: the state that the viewer saw before the turn.
    """
    told = {
        "place": describe_place(spec, viewer, seen, seen_before),
        "said": [
            {"by": spec["statements"][name]["by"], "text": text}
            for name, text in seen.get("statements", {}).items()
            if "statements" in spec
        ],
        "promises": describe_promises(spec, seen),
    }
    return {key: value for key, value in told.items() if value}


def describe_promises(spec: Mapping[str, Any], seen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the promises that a viewer knows of, with their terms and status."""
    return [
        {key: promise[key] for key in ("by", "to", "terms", "due") if key in promise} | {"status": status}
        for name, status in seen.get("promises", {}).items()
        if "promises" in spec
        for promise in [spec["promises"][name]]
    ]


def describe_place(
    spec: Mapping[str, Any],
    viewer: str | None,
    seen: Mapping[str, Any],
    seen_before: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Return the place of the viewer, its exits, the other entities there, and who came or left.

    None if the place is unknown. `from` is the place that the viewer left in the turn; without it, `arrived`
    and `left` are the others that came to or left the place.

    Args:
        spec: the scenario.
        viewer: the entity; without one, the only playable entity.
        seen: the state that the viewer sees.
        seen_before: the state that the viewer saw before the turn.
    """
    places = spec.get("places", {})
    known = seen.get("places", {}) if places else {}
    playable = [entity["id"] for entity in spec.get("entities", ()) if entity.get("playable")]
    own = viewer or (playable[0] if len(playable) == 1 else None)
    here = known.get(own)
    if here is None:
        return None
    place = places[here]
    known_before = seen_before.get("places", {})
    there_before = known_before.get(own)
    others, others_before = (
        [entity for entity, where in positions.items() if where == here and entity != own]
        for positions in (known, known_before)
    )
    has_moved = there_before in places and there_before != here
    told = {
        "id": here,
        "name": short_name(place.get("name", "")),
        "description": place.get("description"),
        "exits": [_describe_exit(places, exit_id) for exit_id in place.get("exits", ()) if exit_id != here],
        "here": others,
        "from": _name_place(places, there_before) if has_moved else "",
        "arrived": [] if has_moved else [one for one in others if one not in others_before],
        "left": [] if has_moved else [one for one in others_before if one not in others],
    }
    return {key: value for key, value in told.items() if value or key == "here"}


def _describe_exit(places: Mapping[str, Any], place_id: str) -> str | dict[str, str]:
    """Return the id of a place, as actions take it, with its name."""
    name = places[place_id].get("name")
    return {"id": place_id, "name": short_name(name)} if name else place_id


def _name_place(places: Mapping[str, Any], place_id: str) -> str:
    return short_name(places[place_id].get("name", place_id))


def short_name(text: str) -> str:
    """Truncate a name."""
    return truncate_text(text, _NAME_CHARACTERS)


def take_fitting(items: Sequence[Any], max_bytes: int) -> Iterator[Any]:
    """Yield the first items that fit together."""
    for item in items:
        max_bytes -= json_size(item) + 1
        if max_bytes < 0:
            return
        yield item


def last_fitting(items: Sequence[Any], max_bytes: int) -> list[Any]:
    """Return the last items that fit together, in their order."""
    return list(take_fitting(items[::-1], max_bytes))[::-1]
