"""Section prompts of a weak model: one answer per section, with a schema of the outline's names.

Every part has its own key, so that it cannot be omitted or repeated. Parsing is lenient: usable parts of an
answer are used, others are ignored.

A grammar forces a model to choose from closed lists, also one that does not understand them. So an action
and an event name the quantity that they are about, a second time. An answer whose changes do not agree with
that contradicts itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.author.blueprint import Chance, Flow, Role, Size, Trigger
from peripety.author.spec_builder.quantities import is_beneficial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.author.blueprint import Action, Blueprint, Event, Quantity


_SIZES = {size.name.lower(): size for size in Size}
_CHANCES = {chance.name.lower(): chance for chance in Chance}
_SIGNS = {sign * size: (sign == "+", size) for sign in "-+" for size in Size}
_NO_HOLDER, _ALWAYS = "nobody", "always"
_LEVELS = {"low": False, "high": True}
_PLAIN, _LATER, _SCALED, _ONCE = "plain", "later", "scaled", "once"
_MAX_CHANGES = 4
# One part in this many may contradict itself.
_TOLERATED = 3
_BOOLEAN = {"type": "boolean"}
_CHANGE, _WHEN = {"$ref": "#/$defs/change"}, {"$ref": "#/$defs/when"}

OutlinePart: TypeAlias = "Quantity | Action | Event"


@dataclass(frozen=True, slots=True)
class OutlineSection:
    """Section of a blueprint.

    A section has three functions: one returns the schema of a part, by key; one merges an answer into the
    part, and returns None if the answer is unusable; one returns True if an answer agrees with itself.

    Attributes:
        name: its name, in the prompt and in a blueprint.
        path: the path of its result in a specification.
    """

    name: str
    path: str
    part_schema: Callable[[Blueprint, Any], dict[str, Any]]
    merge_answer: Callable[[Blueprint, Any, Mapping[str, Any]], OutlinePart | None]
    agrees: Callable[[Blueprint, Mapping[str, Any]], bool] = lambda _blueprint, _answer: True

    def parts(self, blueprint: Blueprint) -> Sequence[OutlinePart]:
        """Return the parts of a blueprint in the section."""
        parts: Sequence[OutlinePart] = getattr(blueprint, self.name)
        return parts

    def schema(self, blueprint: Blueprint) -> dict[str, Any]:
        """Return the JSON Schema of an answer, with the names of the blueprint."""
        quantities = [quantity.name for quantity in blueprint.quantities]
        parts = {
            key: _object_schema({"name": _enum_schema([part.name]), **self.part_schema(blueprint, part)})
            for key, part in self._parts_by_key(blueprint)
        }
        definitions = {
            "change": _enum_schema([f"{signs} {name}" for name in quantities for signs in _SIGNS]),
            "when": _enum_schema([_ALWAYS, *(f"{level} {name}" for name in quantities for level in _LEVELS)]),
        }
        return {**_object_schema(parts), "$defs": definitions}

    def apply_answer(self, blueprint: Blueprint, answer: Any) -> tuple[Blueprint, int]:
        """Merge an answer into the blueprint; return it with the number of parts left unanswered."""
        said = answer if isinstance(answer, dict) else {}
        parts = list(self.parts(blueprint))
        missing = 0
        for index, (key, part) in enumerate(self._parts_by_key(blueprint)):
            told = said.get(key)
            better = self.merge_answer(blueprint, part, told) if isinstance(told, dict) else None
            missing += better is None
            parts[index] = better or part
        changed: dict[str, Any] = {self.name: tuple(parts)}
        return replace(blueprint, **changed), missing

    def contradicts_itself(self, blueprint: Blueprint, answer: Any) -> bool:
        """Return True if more than a third of the answered parts contradict themselves."""
        said = answer if isinstance(answer, dict) else {}
        told = [said[key] for key, _ in self._parts_by_key(blueprint) if isinstance(said.get(key), dict)]
        wrong = sum(not self.agrees(blueprint, one) for one in told)
        return wrong * _TOLERATED > len(told)

    def _parts_by_key(self, blueprint: Blueprint) -> Iterator[tuple[str, OutlinePart]]:
        """Yield each part with an ASCII key, which every provider supports."""
        for number, part in enumerate(self.parts(blueprint), 1):
            yield f"{self.name}_{number:02}", part


def _object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _enum_schema(texts: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(dict.fromkeys(texts))}


def _changes_schema(at_least: int) -> dict[str, Any]:
    return {"type": "array", "items": _CHANGE, "minItems": at_least, "maxItems": _MAX_CHANGES}


def _quantity_schema(blueprint: Blueprint, quantity: Quantity) -> dict[str, Any]:
    asked = {"start": _enum_schema([*_SIZES]), "fades": _BOOLEAN}
    if quantity.is_hidden:
        # A secret belongs to a person, if there are any.
        asked |= {"known_to": _enum_schema([*blueprint.people] or [_NO_HOLDER]), "helps": _BOOLEAN}
    return asked


def _merge_quantity(blueprint: Blueprint, quantity: Quantity, answer: Mapping[str, Any]) -> Quantity | None:
    size = _SIZES.get(_to_text(answer.get("start")))
    if size is None:
        return None
    sized = replace(quantity, start=size, fades=answer.get("fades") is True)
    if not quantity.is_hidden:
        return sized
    people = blueprint.people
    holder = next((person for person in people if person == _to_text(answer.get("known_to"))), "")
    holder = holder or next(iter(people), "")
    role = Role.SUPPLY if answer.get("helps") is True else Role.THREAT
    return replace(sized, role=role, holder=holder, is_hidden=not holder)


def _action_schema(blueprint: Blueprint, _action: Action) -> dict[str, Any]:
    return {
        "for": _names_schema(blueprint),
        "changes": _changes_schema(2),
        "how": _enum_schema([_PLAIN, _LATER, _SCALED, _ONCE]),
    }


def _names_schema(blueprint: Blueprint) -> dict[str, Any]:
    return _enum_schema([quantity.name for quantity in blueprint.quantities])


def _action_agrees(blueprint: Blueprint, answer: Mapping[str, Any]) -> bool:
    """Return True if an action improves what it is for, at the price of something else."""
    roles = {quantity.name: quantity.role for quantity in blueprint.quantities}
    flows = _parse_flows(blueprint, answer.get("changes"))
    gains = {flow.quantity: is_beneficial(roles[flow.quantity], rises=flow.rises) for flow in flows}
    purpose = answer.get("for")
    return purpose is None or (gains.get(_to_text(purpose), False) and not all(gains.values()))


def _event_agrees(blueprint: Blueprint, answer: Mapping[str, Any]) -> bool:
    """Return True if an event changes what it is about."""
    flows = _parse_flows(blueprint, answer.get("changes"))
    subject = answer.get("about")
    return subject is None or _to_text(subject) in {flow.quantity for flow in flows}


def _merge_action(blueprint: Blueprint, action: Action, answer: Mapping[str, Any]) -> Action | None:
    flows = _parse_flows(blueprint, answer.get("changes"))
    if not flows:
        return None
    how = _to_text(answer.get("how"))
    return replace(
        action,
        flows=flows,
        is_delayed=how == _LATER,
        is_scaled=how == _SCALED,
        is_final=how == _ONCE,
    )


def _event_schema(blueprint: Blueprint, _event: Event) -> dict[str, Any]:
    return {
        "about": _names_schema(blueprint),
        "changes": _changes_schema(1),
        "chance": _enum_schema([*_CHANCES]),
        "when": _WHEN,
        "lasts": _BOOLEAN,
    }


def _merge_event(blueprint: Blueprint, event: Event, answer: Mapping[str, Any]) -> Event | None:
    flows = _parse_flows(blueprint, answer.get("changes"))
    if not flows:
        return None
    return replace(
        event,
        flows=flows,
        chance=_CHANCES.get(_to_text(answer.get("chance")), event.chance),
        when=_parse_trigger(blueprint, _to_text(answer.get("when"))),
        lasts=answer.get("lasts") is True,
    )


def _parse_flows(blueprint: Blueprint, changes: Any) -> tuple[Flow, ...]:
    """Return the valid changes, at most one per quantity."""
    flows: dict[str, Flow] = {}
    for change in changes if isinstance(changes, list) else []:
        signs, _, name = _to_text(change).partition(" ")
        if signs in _SIGNS and _is_known(blueprint, name):
            flows.setdefault(name, Flow(name, *_SIGNS[signs]))
    return tuple(flows.values())[:_MAX_CHANGES]


def _parse_trigger(blueprint: Blueprint, waits: str) -> Trigger | None:
    level, _, name = waits.partition(" ")
    return Trigger(name, _LEVELS[level]) if level in _LEVELS and _is_known(blueprint, name) else None


def _is_known(blueprint: Blueprint, name: str) -> bool:
    return any(name == quantity.name for quantity in blueprint.quantities)


def _to_text(value: Any) -> str:
    """Return a text of an answer; empty if it is not a text."""
    return value if isinstance(value, str) else ""


OUTLINE_SECTIONS = (
    OutlineSection("quantities", "/state", _quantity_schema, _merge_quantity),
    OutlineSection("actions", "/actions", _action_schema, _merge_action, _action_agrees),
    OutlineSection("events", "/random_events", _event_schema, _merge_event, _event_agrees),
)
"""The sections in the order of their prompts."""
