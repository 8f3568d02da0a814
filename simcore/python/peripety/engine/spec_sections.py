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

from peripety.engine.schema_validation import format_pointer, parse_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


PartName: TypeAlias = tuple[str, ...]
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
    "deal": "id",
}
"""The lists whose entries are parts, with the key that identifies an entry."""

DIVIDED = (
    "state",
    "negativity_budget",
    "bounds",
    "labels",
    "epilogues",
    "clues",
    "statements",
    "promises",
    "places",
)
"""The objects whose members are parts."""


@dataclass(frozen=True, slots=True)
class SpecPart:
    """Part of a document.

    Attributes:
        name: its name. An entry without an id has an empty id and its position; of several entries with the
            same id, each after the first has a number.
        path: its JSON Pointer.
        value: its content. An empty section is a part, too, under the name of the section.
    """

    name: PartName
    path: str
    value: Any


def split_parts(document: Any) -> Iterator[SpecPart]:
    """Yield the parts of a document, valid or not, in order."""
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        if value and key in SECTIONS and isinstance(value, list):
            yield from _split_entries(key, value)
        elif value and key in DIVIDED and isinstance(value, dict):
            for inner, content in value.items():
                yield SpecPart((key, inner), format_pointer((key, inner)), content)
        else:
            yield SpecPart((key,), format_pointer((key,)), value)


def part_name_at(document: Any, path: str) -> PartName:
    """Return the name of the part at a JSON Pointer; of a section, or (), if it covers several parts."""
    part = get_part_at(document, path)
    return part.name if part else parse_pointer(path)[:1]


def get_part_at(document: Any, path: str) -> SpecPart | None:
    """Return the part at a JSON Pointer; None if it covers several parts or does not exist."""
    place = parse_pointer(path)
    for part in split_parts(document):
        of_part = parse_pointer(part.path)
        if place[: len(of_part)] == of_part:
            return part
    return None


def join_parts(contents: Mapping[PartName, Any]) -> dict[str, Any]:
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


def _split_entries(section: str, entries: list[Any]) -> Iterator[SpecPart]:
    seen: Counter[str] = Counter()
    for place, entry in enumerate(entries):
        known_by = entry.get(SECTIONS[section]) if isinstance(entry, dict) else None
        path = format_pointer((section, place))
        if not isinstance(known_by, str):
            yield SpecPart((section, "", str(place)), path, entry)
            continue
        seen[known_by] += 1
        number = () if seen[known_by] == 1 else (str(seen[known_by]),)
        yield SpecPart((section, known_by, *number), path, entry)
