"""Pairwise combinations of values: a covering array of strength two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from covertable import make

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["pairs"]

_MOST_VALUES = 16
"""Limit per factor; the time for combinations grows much faster than the number of values."""

_MOST_PAIRS = 4_000
"""Limit for all factors, for the same reason; so many take two or three seconds."""


def pairs(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows in which every pair of values of two factors occurs.

    At most 16 values of each factor are combined, or fewer if the number of pairs exceeds the limit. If there
    are too many factors, only the first ones are combined, and the others have their first value.

    Args:
        values: the values of each factor by its name; at least one of each.

    Returns:
        The rows, in a deterministic order; one empty row without factors.
    """
    if not values:
        return [{}]
    places = {name: [*range(count)] for name, count in _counts(values).items()}
    rows = make(places, strength=min(2, len(places)))
    return [{name: values[name][row.get(name, 0)] for name in values} for row in rows]


def _counts(values: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """Return the number of combined values of each factor, without the factors that are not combined."""
    for most in range(_MOST_VALUES, 1, -1):
        counts = {name: min(len(choices), most) for name, choices in values.items()}
        if _number_of_pairs(counts.values()) <= _MOST_PAIRS:
            return counts
    while _number_of_pairs(counts.values()) > _MOST_PAIRS:
        counts.popitem()
    return counts


def _number_of_pairs(counts: Iterable[int]) -> int:
    among, so_far = 0, 0
    for count in counts:
        among += so_far * count
        so_far += count
    return among
