"""Parts of a specification: the units of replacement, comparison and findings.

A part is a rule, an entity or a label in its section, a quantity of the state, a figure of the budget, or any
other top-level value. Its name is stable under reordering: rules are identified by their ids and labels by
their paths, not by their positions.
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
"""The name of a part: `("actions", "alpha")`, `("state", "gauge")`, `("horizon",)`; () is the whole document.
"""

SECTIONS = {
    "entities": "id",
    "actions": "id",
    "random_events": "id",
    "loss_conditions": "id",
    "win_conditions": "id",
    "visibility": "path",
    "narrator_scope": "path",
}
"""The lists whose entries are parts, with the key that identifies an entry."""

DIVIDED = ("state", "negativity_budget")
"""The objects whose members are parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a document.

    Attributes:
        name: its name. An entry without an id has an empty id and its position; of several entries with the
            same id, each after the first has a number.
        path: its JSON Pointer.
        value: its content. An empty section is a part, too, under the name of the section.
    """

    name: Name
    path: str
    value: Any


def parts(document: Any) -> Iterator[Part]:
    """Yield the parts of a document, valid or not, in order."""
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
    """Return the name of the part at a JSON Pointer; of a section, or (), if it covers several parts."""
    part = part_at(document, path)
    return part.name if part else segments(path)[:1]


def part_at(document: Any, path: str) -> Part | None:
    """Return the part at a JSON Pointer; None if it covers several parts or does not exist."""
    place = segments(path)
    for part in parts(document):
        of_part = segments(part.path)
        if place[: len(of_part)] == of_part:
            return part
    return None


def assembled(contents: Mapping[Name, Any]) -> dict[str, Any]:
    """Assemble a document from its parts, in order; the inverse of `parts`."""
    document: dict[str, Any] = {}
    for name, value in contents.items():
        key = name[0]
        if len(name) == 1:
            # Copied, because members are added to the section below.
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
