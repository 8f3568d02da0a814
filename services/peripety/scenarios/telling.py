"""Descriptions of the parts of a specification, and of their changes, in one line each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.scenarios.parts import SECTIONS
from peripety.scenarios.phrases import condition, effect, expression, literal, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.scenarios.parts import Name

__all__ = ["content", "difference", "subject"]

_LONGEST = 80
_KINDS = {
    "entities": "entity",
    "actions": "action",
    "random_events": "event",
    "loss_conditions": "loss",
    "win_conditions": "win",
}
_LABELLED = {"visibility": "who sees", "narrator_scope": "what the narrator may do to"}
_CONDITIONS = frozenset({"preconditions", "when"})
_ORDER = ("name", "kind", "description", "weight", "when", "preconditions", "duration", "params", "derives")
"""The keys of a rule that are described first; other keys follow, effects are last."""
_SPANS = {("duration",), ("turn",)}
_IDENTITY = frozenset(SECTIONS.values())

_Aspect: TypeAlias = tuple[tuple[str, ...], tuple[str, str]]
"""An aspect of a part: the key that matches it before and after a change, with its label and text."""


def subject(name: Name) -> str:
    """Describe a part by its name, such as `event 'a'` or `initial a`."""
    section, known_by = name[0], "".join(name[1:2])
    if len(name) == 1:
        return section
    if section in _KINDS:
        return f"{_KINDS[section]} '{known_by}'"
    if section in _LABELLED:
        return f"{_LABELLED[section]} {quantity(known_by)}"
    return f"initial {known_by}" if section == "state" else known_by.removesuffix("_per_turn")


def content(name: Name, value: Any) -> str:
    """Describe the content of a part."""
    return "; ".join(filter(None, (_spoken(*told) for told in _aspects(name, value).values())))


def difference(name: Name, before: Any, after: Any) -> str:
    """Describe the change of a part, such as `weight 0.1 → 0.15; a -3 → a -5`."""
    old, new = _aspects(name, before), _aspects(name, after)
    gone = [f"{_spoken(*told)} removed" for key, told in old.items() if key not in new]
    come = [f"{_spoken(*told)} added" for key, told in new.items() if key not in old]
    moved = [_moved(old[key], told) for key, told in new.items() if key in old and old[key] != told]
    return "; ".join([*moved, *come, *gone]) or "put in another order"


def _moved(before: tuple[str, str], after: tuple[str, str]) -> str:
    label, was = before
    one, other = _clipped(was), _clipped(after[1])
    if one == other:
        return f"{label or one} reworded"
    return f"{label} {one} → {other}".strip()


def _spoken(label: str, text: str) -> str:
    return f"{label} {_clipped(text)}".strip()


def _aspects(name: Name, value: Any) -> dict[tuple[str, ...], tuple[str, str]]:
    """Return the aspects of a part; an invalid rule of a draft is formatted as JSON."""
    is_entry = name[0] in SECTIONS and isinstance(value, dict)
    return dict(_of_entry(value) if is_entry else _of_value(value, ()))


def _of_value(value: Any, place: tuple[str, ...]) -> Iterator[_Aspect]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _of_value(inner, (*place, key))
    else:
        is_span = place[-1:] in _SPANS and isinstance(value, str)
        yield place, (".".join(map(quantity, place)), value if is_span else literal(value))


def _of_entry(value: Mapping[str, Any]) -> Iterator[_Aspect]:
    for key in sorted(value, key=_rank):
        said = value[key]
        if key in _IDENTITY:
            continue
        if key in _CONDITIONS:
            yield (key,), ("when", condition(said) or "always")
        elif key == "effects" and isinstance(said, list):
            yield from _of_effects(said, value.get("derives"))
        elif key == "params" and isinstance(said, dict):
            yield from (((key, name), (name, _domain(param))) for name, param in said.items())
        elif key == "derives" and isinstance(said, dict):
            yield from (((key, name), (f"{name} =", expression(logic))) for name, logic in said.items())
        else:
            yield from _of_value(said, (key,))


def _rank(key: str) -> tuple[bool, int]:
    return key == "effects", _ORDER.index(key) if key in _ORDER else len(_ORDER)


def _of_effects(done: list[Any], derives: Any) -> Iterator[_Aspect]:
    """Yield the aspects of effects; two effects match if they have the same operation and quantity."""
    seen: Counter[str] = Counter()
    for one in done:
        place = f"{_family(one)} {one.get('path', one.get('id'))}" if isinstance(one, dict) else ""
        seen[place] += 1
        yield ("effects", place, str(seen[place])), ("", effect(one, derives or {}))


def _family(done: Mapping[str, Any]) -> Any:
    match done:
        case {"op": "inc" | "dec"}:
            return "move"
        case _:
            return done.get("op")


def _domain(param: Any) -> str:
    """Format the allowed values of a parameter."""
    match param:
        case {"enum": [*options]}:
            return f"one of {', '.join(map(literal, options))}"
        case {"type": str(kind), "minimum": least, "maximum": most}:
            return f"{kind} from {literal(least)} to {literal(most)}"
        case {"maxLength": int(longest)}:
            return f"text of up to {longest} characters"
        case {"type": "boolean"}:
            return "yes or no"
        case _:
            return literal(param)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
