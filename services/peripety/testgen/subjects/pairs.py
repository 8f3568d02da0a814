"""Combinations of values in which every two values occur together: a covering array of strength two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from covertable import make

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["pairs"]

_MOST_VALUES = 16
"""Of one factor: how long it takes to combine them grows much faster than their number."""

_MOST_PAIRS = 4_000
"""Of all factors, for the same reason: so many take a second or three."""


def pairs(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows in which every pair of values of two factors occurs.

    Of many values those are the first 16 of each factor, or as many fewer as can be combined in a moment; of
    many factors the first, and the others keep their first value.

    Args:
        values: the values of each factor, by its name; at least one of each.

    Returns:
        The rows, the same ones in the same order every time; one empty row without factors.
    """
    if not values:
        return [{}]
    places = {name: [*range(count)] for name, count in _counts(values).items()}
    rows = make(places, strength=min(2, len(places)))
    return [{name: values[name][row.get(name, 0)] for name in values} for row in rows]


def _counts(values: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """How many values of each factor are combined; of those left out, nothing is."""
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
