"""Variants of an action: one for each value of the parameters in its paths and messages."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.engine._reference.effects import escape_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


MAX_VARIANTS = 64
# A quoted key, which is not substituted, or a parameter in the place of a key.
_KEY_OR_PARAM = re.compile(r'"(?:[^"\\]|\\.)*"|\[params\.([A-Za-z_][A-Za-z0-9_]*)\]')
_LOGIC = ("preconditions", "derives")


class Variant(NamedTuple):
    """An action for some values of its parameters.

    Attributes:
        values: the value of each parameter in a path or message, by its name.
        action: the action with these values in the place of the parameters.
    """

    values: dict[str, str]
    action: dict[str, Any]


def list_variants(spec: dict[str, Any]) -> list[list[Variant]]:
    """Return the variants of each action; none of an action without parameters in a path or message.

    Such a parameter must be a string with `enum`, and the variants must be at most `MAX_VARIANTS`. Otherwise,
    and before version 1.1, an action has none.
    """
    if spec.get("spec_version") != "1.1":
        return [[] for _ in spec["actions"]]
    return [expand_action(action) for action in spec["actions"]]


def list_rules(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the actions of a scenario, each variant by itself, and its events."""
    actions: list[dict[str, Any]] = []
    for action, variants in zip(spec["actions"], list_variants(spec), strict=True):
        actions += [variant.action for variant in variants] or [action]
    return [*actions, *spec["random_events"]]


def expand_action(action: dict[str, Any]) -> list[Variant]:
    """Return the variants of an action, as `list_variants`."""
    names = sorted({name for name, _ in iter_placed_params(action)})
    options = [list_options(action, name) for name in names]
    if not names or not 1 <= prod(map(len, options)) <= MAX_VARIANTS:
        return []
    return [
        Variant(values, _substitute_action(action, values))
        for values in (dict(zip(names, chosen, strict=True)) for chosen in product(*options))
    ]


def list_options(action: dict[str, Any], name: str) -> list[str]:
    """Return the distinct values of a parameter; none if it is not a string with `enum`."""
    schema = action["params"].get(name, {})
    options = schema.get("enum", []) if schema.get("type") == "string" else []
    return [*dict.fromkeys(options)] if all(isinstance(option, str) for option in options) else []


def iter_placed_params(action: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each parameter in a path or message, with the JSON Pointer of its place in the action."""
    found: list[tuple[str, str]] = []

    def note(text: str, place: str) -> str:
        found.extend((match[1], place) for match in _KEY_OR_PARAM.finditer(text) if match[1])
        return text

    def note_message(message: dict[str, Any], place: str) -> dict[str, Any]:
        found.append((message["param"], place))
        return message

    _ActionMap(note, note_message).map_action(action)
    yield from found


def _substitute_action(action: dict[str, Any], values: dict[str, str]) -> dict[str, Any]:
    def substitute(text: str, _place: str) -> str:
        return _KEY_OR_PARAM.sub(
            lambda match: f"[{json.dumps(values[match[1]], ensure_ascii=False)}]" if match[1] else match[0],
            text,
        )

    def choose_text(message: dict[str, Any], _place: str) -> str:
        return str(message["texts"].get(values[message["param"]], ""))

    return _ActionMap(substitute, choose_text).map_action(action)


@dataclass(frozen=True)
class _ActionMap:
    """Functions for the paths of an action, and for its messages that depend on a parameter."""

    path: Callable[[str, str], str]
    message: Callable[[dict[str, Any], str], Any]

    def map_action(self, action: dict[str, Any]) -> dict[str, Any]:
        logic = {key: self._map_logic(action[key], f"/{key}") for key in _LOGIC if key in action}
        return {**action, **logic, "effects": self._map_effects(action["effects"], "/effects")}

    def _map_logic(self, logic: Any, place: str) -> Any:
        if isinstance(logic, list):
            return [self._map_logic(item, f"{place}/{index}") for index, item in enumerate(logic)]
        if not isinstance(logic, dict):
            return logic
        return {
            name: (self._map_variable if name == "var" else self._map_logic)(
                item,
                f"{place}/{escape_segment(name)}",
            )
            for name, item in logic.items()
        }

    def _map_variable(self, operand: Any, place: str) -> Any:
        if isinstance(operand, str):
            return self.path(operand, place)
        if isinstance(operand, list) and operand and isinstance(operand[0], str):
            return [self.path(operand[0], place), *self._map_logic(operand[1:], place)]
        return self._map_logic(operand, place)

    def _map_effects(self, effects: list[Any], place: str) -> list[Any]:
        return [self._map_effect(effect, f"{place}/{index}") for index, effect in enumerate(effects)]

    def _map_effect(self, effect: dict[str, Any], place: str) -> dict[str, Any]:
        changed = dict(effect)
        if "path" in effect:
            changed["path"] = self.path(effect["path"], place)
        if isinstance(effect.get("message"), dict):
            changed["message"] = self.message(effect["message"], place)
        if "when" in effect:
            changed["when"] = self._map_logic(effect["when"], f"{place}/when")
        if "effects" in effect:
            changed["effects"] = self._map_effects(effect["effects"], f"{place}/effects")
        return changed
