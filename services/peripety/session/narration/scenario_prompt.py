"""Scenario description for the narrator's system prompt: texts, people and the public rules.

It does not depend on the turn, so all prompts of a session begin with the same bytes and match the prompt
cache.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.core.text_files import read_prompt
from peripety.engine.rule_text import describe_condition, describe_effects, format_literal
from peripety.scenario.action_tools import PublicScenario
from peripety.session.narration.turn_context import json_size, truncate_json, truncate_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.session.visibility import ViewerProjection


_MAX_CHARACTERS = 24
_MAX_RULES = 24
_NAME_CHARACTERS = 80
_PHRASE_CHARACTERS = 160
_MAX_VALUES = 8
_VALUE_CHARACTERS = 60
_SCOPE_BYTES = 3_000
_STATE_BYTES = 6_000
_PREMISE_CHARACTERS = 2_048
_SMALL_PREMISE = 400
_OPENING_CHARACTERS = 2_000
_TEXT_CHARACTERS = 1_000
_SMALL_TEXT = 80
_LABEL_BYTES = 3_000


def render_scenario(
    spec: Mapping[str, Any],
    view: ViewerProjection,
    language: str | None,
    *,
    is_small: bool = False,
) -> dict[str, Any]:
    """Return the scenario description for one view.

    Args:
        spec: the scenario.
        view: the visible part of the state.
        language: language of the narration; None for the scenario's own.
        is_small: True for a model with a small context window.
    """
    public = PublicScenario(spec)
    told = {
        "name": truncate_text(spec["name"], _NAME_CHARACTERS),
        "language": language,
        "point_of_view": view.viewer,
        "premise": _describe_premise(spec, _SMALL_PREMISE if is_small else _PREMISE_CHARACTERS),
        "opening": "" if is_small else truncate_text(spec.get("opening", ""), _OPENING_CHARACTERS),
        "entities": describe_characters(spec, view.viewer, _SMALL_TEXT if is_small else _TEXT_CHARACTERS),
        "labels": {} if is_small else dict(_take_fitting(_visible_labels(spec, view), _LABEL_BYTES)),
        "events": [_describe_event(rule, public) for rule in spec["random_events"][:_MAX_RULES]],
        "losses": [_describe_ending(rule, public) for rule in spec["loss_conditions"][:_MAX_RULES]],
        "wins": [_describe_ending(rule, public) for rule in spec.get("win_conditions", ())[:_MAX_RULES]],
        "each_turn": list(_describe_decay(spec, public))[:_MAX_RULES],
        "you_may_change": dict(
            _take_fitting(_permitted_changes(spec, PublicScenario(spec, view.viewer)), _SCOPE_BYTES),
        ),
        "start": truncate_json(view.project_state(spec["state"]), _STATE_BYTES),
    }
    return {key: value for key, value in told.items() if value or key in {"language", "point_of_view"}}


def list_characters(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return id, name and kind of the entities, up to a limit."""
    entities = spec.get("entities", ())[:_MAX_CHARACTERS]
    return [_describe_named(entity, "name", "kind") for entity in entities]


_PUBLIC_TEXTS = ("description", "voice", "manner")
_OWN_TEXTS = ("wants", "knows", "secret")


def describe_characters(
    spec: Mapping[str, Any],
    viewer: str | None,
    characters: int = _TEXT_CHARACTERS,
) -> list[dict[str, Any]]:
    """Return the entities with their public texts, and the point of view with its own texts as well.

    Before version 1.1, `description` has no defined audience, so it is left out.
    """
    if spec["spec_version"] == "1.0":
        return list_characters(spec)
    told = []
    for entity, shown in zip(spec.get("entities", ()), list_characters(spec), strict=False):
        keys = (*_PUBLIC_TEXTS, *(_OWN_TEXTS if entity["id"] == viewer else ()))
        texts = {key: truncate_text(entity[key], characters) for key in keys if entity.get(key)}
        told.append(shown | texts)
    return told


def public_texts(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a scenario that every viewer may know, besides its rules."""
    if spec["spec_version"] == "1.0":
        return
    premise = spec.get("premise") or ""
    yield premise if isinstance(premise, str) else premise["text"]
    yield spec.get("opening", "")
    for entity in spec.get("entities", ()):
        yield from (entity[key] for key in _PUBLIC_TEXTS if entity.get(key))
    for label in spec.get("labels", {}).values():
        yield from (label["name"], label.get("unit", ""), *(band["word"] for band in label.get("bands", ())))


def _describe_premise(spec: Mapping[str, Any], characters: int) -> Any:
    premise = spec.get("premise") or ""
    if isinstance(premise, str):
        return truncate_text(premise, characters)
    return {**premise, "text": truncate_text(premise["text"], characters)}


def _visible_labels(spec: Mapping[str, Any], view: ViewerProjection) -> Iterator[tuple[str, Any]]:
    return ((path, label) for path, label in spec.get("labels", {}).items() if view.can_see(path))


def _describe_named(rule: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    shown = {key: truncate_text(rule[key], _NAME_CHARACTERS) for key in keys if rule.get(key)}
    return {"id": rule["id"]} | shown


def _describe_event(rule: Mapping[str, Any], public: PublicScenario) -> dict[str, Any]:
    part = public.filter_action({**rule, "preconditions": rule["when"]})
    told = {
        "when": _short_phrase(describe_condition(part.preconditions)),
        "does": _short_phrase(
            "; ".join(describe_effects({"effects": part.effects, "derives": part.derives})),
        ),
    }
    return _describe_named(rule, "name") | {key: value for key, value in told.items() if value}


def _describe_ending(rule: Mapping[str, Any], public: PublicScenario) -> dict[str, Any]:
    part = public.filter_action({"preconditions": rule["when"], "effects": ()})
    told = {
        "when": _short_phrase(describe_condition(part.preconditions)),
        "message": _short_phrase(rule.get("message") or ""),
    }
    return _describe_named(rule) | {key: value for key, value in told.items() if value}


def _describe_decay(spec: Mapping[str, Any], public: PublicScenario) -> Iterator[str]:
    for path, amount in (spec["negativity_budget"].get("decay_per_turn") or {}).items():
        yield from describe_effects(
            {"effects": public.filter_effects([{"op": "dec", "path": path, "value": amount}])},
        )


def _permitted_changes(spec: Mapping[str, Any], public: PublicScenario) -> Iterator[tuple[str, str]]:
    """Yield the paths that the narrator may change, with the permitted operations."""
    ways: dict[str, list[str]] = {}
    for allowance in engine.list_narrator_permissions(spec):
        path = engine.format_path(allowance.path)
        values = [json.loads(value) for value in allowance.values or ()]
        done = [{"op": allowance.operation, "path": path, "value": value} for value in values or [None]]
        # An operation whose effect is not visible is left out, as the narrator could not use it knowingly.
        seen = [effect["value"] for effect in public.filter_effects(done)]
        if seen:
            ways.setdefault(path, []).append(_describe_operation(allowance, seen))
    return ((path, "; ".join(told)) for path, told in ways.items())


def _describe_operation(allowance: engine.NarratorPermission, values: list[Any]) -> str:
    """Describe one operation, such as `inc by at most 3`."""
    below = " (also of what is in it)" if allowance.includes_children else ""
    if allowance.operation == "pop":
        return f"pop{below}"
    if allowance.values is None:
        limit = "" if allowance.limit is None else f" by at most {format_literal(allowance.limit)}"
        return f"{allowance.operation}{limit}{below}"
    listed = " or ".join(
        truncate_text(format_literal(value), _VALUE_CHARACTERS) for value in values[:_MAX_VALUES]
    )
    return f"{allowance.operation} {listed}{' or …' if len(values) > _MAX_VALUES else ''}"


def _take_fitting(pairs: Iterable[tuple[str, Any]], room: int) -> Iterator[tuple[str, Any]]:
    for path, told in pairs:
        room -= json_size({path: told})
        if room < 0:
            return
        yield path, told


def _short_phrase(text: str) -> str:
    return truncate_text(text, _PHRASE_CHARACTERS)


load_prompt = partial(read_prompt, "peripety.session")
