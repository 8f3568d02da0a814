"""Scenario description for the narrator's system prompt, derived from the public rules.

It does not depend on the turn, so all prompts of a session begin with the same bytes and hit the prompt
cache.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.scenarios.phrases import condition, effects, literal
from peripety.scenarios.public import Public
from peripety.sessions.narrating.abridging import abridged, clipped, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.sessions.visibility import SessionView

__all__ = ["background", "cast_of"]

_CAST = 24
_RULES = 24
_NAME_CHARACTERS = 80
_PHRASE_CHARACTERS = 160
_VALUES = 8
_VALUE_CHARACTERS = 60
_SCOPE_BYTES = 3_000
_STATE_BYTES = 6_000


def background(spec: Mapping[str, Any], view: SessionView, language: str | None) -> dict[str, Any]:
    """Return the scenario description for one view.

    Args:
        spec: the scenario.
        view: the visible part of the state.
        language: language of the narration; None for the scenario's own.
    """
    public = Public(spec)
    told = {
        "name": clipped(spec["name"], _NAME_CHARACTERS),
        "language": language,
        "point_of_view": view.viewer,
        "entities": cast_of(spec),
        "events": [_event(rule, public) for rule in spec["random_events"][:_RULES]],
        "losses": [_end(rule, public) for rule in spec["loss_conditions"][:_RULES]],
        "wins": [_end(rule, public) for rule in spec.get("win_conditions", ())[:_RULES]],
        "each_turn": list(_decay(spec, public))[:_RULES],
        "you_may_change": dict(_fitting(_scope(spec, Public(spec, view.viewer)), _SCOPE_BYTES)),
        "start": abridged(view.state(spec["state"]), _STATE_BYTES),
    }
    return {key: value for key, value in told.items() if value or key in {"language", "point_of_view"}}


def cast_of(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return id, name and kind of the entities, up to a limit."""
    entities = spec.get("entities", ())[:_CAST]
    return [_named(entity, "name", "kind") for entity in entities]


def _named(rule: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    shown = {key: clipped(rule[key], _NAME_CHARACTERS) for key in keys if rule.get(key)}
    return {"id": rule["id"]} | shown


def _event(rule: Mapping[str, Any], public: Public) -> dict[str, Any]:
    part = public.part_of({**rule, "preconditions": rule["when"]})
    told = {
        "when": _short(condition(part.preconditions)),
        "does": _short("; ".join(effects({"effects": part.effects, "derives": part.derives}))),
    }
    return _named(rule, "name") | {key: value for key, value in told.items() if value}


def _end(rule: Mapping[str, Any], public: Public) -> dict[str, Any]:
    part = public.part_of({"preconditions": rule["when"], "effects": ()})
    told = {"when": _short(condition(part.preconditions)), "message": _short(rule.get("message") or "")}
    return _named(rule) | {key: value for key, value in told.items() if value}


def _decay(spec: Mapping[str, Any], public: Public) -> Iterator[str]:
    for path, amount in (spec["negativity_budget"].get("decay_per_turn") or {}).items():
        yield from effects({"effects": public.effects([{"op": "dec", "path": path, "value": amount}])})


def _scope(spec: Mapping[str, Any], public: Public) -> Iterator[tuple[str, str]]:
    """Yield the paths that the narrator may change, with the permitted operations."""
    ways: dict[str, list[str]] = {}
    for allowance in sim.narrator_scope(spec):
        path = sim.format_path(allowance.path)
        values = [json.loads(value) for value in allowance.values or ()]
        done = [{"op": allowance.operation, "path": path, "value": value} for value in values or [None]]
        # An operation whose effect is not visible is left out, as the narrator could not use it knowingly.
        seen = [effect["value"] for effect in public.effects(done)]
        if seen:
            ways.setdefault(path, []).append(_way(allowance, seen))
    return ((path, "; ".join(told)) for path, told in ways.items())


def _way(allowance: sim.Allowance, values: list[Any]) -> str:
    """Describe one operation, such as `inc by at most 3`."""
    below = " (also of what is in it)" if allowance.below else ""
    if allowance.operation == "pop":
        return f"pop{below}"
    if allowance.values is None:
        limit = "" if allowance.limit is None else f" by at most {literal(allowance.limit)}"
        return f"{allowance.operation}{limit}{below}"
    listed = " or ".join(clipped(literal(value), _VALUE_CHARACTERS) for value in values[:_VALUES])
    return f"{allowance.operation} {listed}{' or …' if len(values) > _VALUES else ''}"


def _fitting(pairs: Iterable[tuple[str, str]], room: int) -> Iterator[tuple[str, str]]:
    for path, told in pairs:
        room -= size({path: told})
        if room < 0:
            return
        yield path, told


def _short(text: str) -> str:
    return clipped(text, _PHRASE_CHARACTERS)
