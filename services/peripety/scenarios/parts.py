"""The parts of a specification: what can be replaced, compared and found fault with by itself.

A part is a rule, an entity or a label in its section, a quantity of the state, a figure of the budget, or
anything else at the top. Its name outlives a move: rules are known by their ids and labels by their paths,
not by their places.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.sim.schema import pointer, segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["DIVIDED", "SECTIONS", "Name", "Part", "assembled", "name_at", "part_at", "parts"]

Name: TypeAlias = tuple[str, ...]
"""What a part is known by: `("actions", "alpha")`, `("state", "gauge")`, `("horizon",)`; () is everything."""

SECTIONS = {
    "entities": "id",
    "actions": "id",
    "random_events": "id",
    "loss_conditions": "id",
    "win_conditions": "id",
    "visibility": "path",
    "narrator_scope": "path",
}
"""The lists whose entries are parts, and the key that each entry is known by."""

DIVIDED = ("state", "negativity_budget")
"""The objects whose keys are parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a document.

    Attributes:
        name: what it is known by; an entry without a name of its own has an empty one and its place, and of
            several with the same name each after the first has its number.
        path: its JSON Pointer.
        value: its content. An empty section is a part too, by the section's name.
    """

    name: Name
    path: str
    value: Any


def parts(document: Any) -> Iterator[Part]:
    """The parts of a document, which need not be valid, in its order."""
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        if value and key in SECTIONS and isinstance(value, list):
            yield from _entries(key, value)
        elif value and key in DIVIDED and isinstance(value, dict):
            for inner, content in value.items():
                yield Part((key, inner), pointer((key, inner)), content)
        else:
            yield Part((key,), pointer((key,)), value)


def name_at(document: Any, path: str) -> Name:
    """The name of the part that holds what a JSON Pointer names; a section's, or (), for more of them."""
    part = part_at(document, path)
    return part.name if part else segments(path)[:1]


def part_at(document: Any, path: str) -> Part | None:
    """The part that holds what a JSON Pointer names; None when it names more than one, or nothing."""
    place = segments(path)
    for part in parts(document):
        of_part = segments(part.path)
        if place[: len(of_part)] == of_part:
            return part
    return None


def assembled(contents: Mapping[Name, Any]) -> dict[str, Any]:
    """The document of parts, in their order; the opposite of `parts`."""
    document: dict[str, Any] = {}
    for name, value in contents.items():
        key = name[0]
        if len(name) == 1:
            # What an empty section is told with must not grow with what is put into it here.
            document.setdefault(key, copy(value))
        elif key in SECTIONS:
            document.setdefault(key, []).append(value)
        else:
            document.setdefault(key, {})[name[1]] = value
    return document


def _entries(section: str, entries: list[Any]) -> Iterator[Part]:
    seen: Counter[str] = Counter()
    for place, entry in enumerate(entries):
        known_by = entry.get(SECTIONS[section]) if isinstance(entry, dict) else None
        path = pointer((section, place))
        if not isinstance(known_by, str):
            yield Part((section, "", str(place)), path, entry)
            continue
        seen[known_by] += 1
        number = () if seen[known_by] == 1 else (str(seen[known_by]),)
        yield Part((section, known_by, *number), path, entry)
