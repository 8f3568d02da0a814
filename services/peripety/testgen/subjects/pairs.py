"""Combinations of values in which every two values occur together: a covering array of strength two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from covertable import make

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["pairs"]

_MOST_VALUES = 16
"""Of one factor: how long it takes to combine them grows much faster than their number."""


def pairs(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows in which every pair of values of two factors occurs, each of all factors; of many, the first 16.

    Args:
        values: the values of each factor, by its name; at least one of each.

    Returns:
        The rows, the same ones in the same order every time; one empty row without factors.
    """
    if not values:
        return [{}]
    places = {name: [*range(min(len(choices), _MOST_VALUES))] for name, choices in values.items()}
    rows = make(places, strength=min(2, len(places)))
    return [{name: values[name][row[name]] for name in values} for row in rows]
