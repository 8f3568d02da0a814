"""Changes of one part of a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["GONE", "Change", "Place", "changed"]

GONE: Final = object()
"""What stands in the place of a part that is taken away."""

Place = tuple["str | int", ...]
"""The way to a part of a document: keys and indices."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one part.

    Attributes:
        place: where it is, from the whole on.
        before: the part before.
        after: the part after, or `GONE`.
    """

    place: Place
    before: Any
    after: Any


def changed(part: Any, place: Place, after: Any) -> Any:
    """A copy of a part with another value at a place, or with none, which shares all that is the same."""
    first, *rest = place
    inner = changed(part[first], tuple(rest), after) if rest else after
    if isinstance(first, int):
        kept = [] if inner is GONE else [inner]
        return [*part[:first], *kept, *part[first + 1 :]]
    others = {key: value for key, value in part.items() if key != first}
    return others if inner is GONE else others | {first: inner}
