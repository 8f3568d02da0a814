"""Edits of one part of a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["GONE", "Change", "Place", "changed"]

GONE: Final = object()
"""Marker for a removed part."""

Place = tuple["str | int", ...]
"""Path to a part of a document: keys and indices."""


@dataclass(frozen=True, slots=True)
class Change:
    """Edit of one part.

    Attributes:
        place: path of the part, from the root.
        before: the part before.
        after: the part after, or `GONE`.
    """

    place: Place
    before: Any
    after: Any


def changed(part: Any, place: Place, after: Any) -> Any:
    """Return a copy with the value at a path replaced or removed; unchanged parts are shared."""
    first, *rest = place
    inner = changed(part[first], tuple(rest), after) if rest else after
    if isinstance(first, int):
        kept = [] if inner is GONE else [inner]
        return [*part[:first], *kept, *part[first + 1 :]]
    others = {key: value for key, value in part.items() if key != first}
    return others if inner is GONE else others | {first: inner}
