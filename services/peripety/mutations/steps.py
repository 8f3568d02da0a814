"""Sampling of long lists, and the neighbours of a number."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LARGEST_INTEGER", "MOST_ENTRIES", "shifted", "smallest_step", "some"]

MOST_ENTRIES = 32
"""Entries of one list that are examined; longer lists are sampled."""

LARGEST_INTEGER = 2**53 - 1
"""Largest magnitude of an integer in a document."""

_Item = TypeVar("_Item")


def some(items: Sequence[_Item]) -> list[tuple[int, _Item]]:
    """Return items with their indices: all, or a sample.

    A sample has `MOST_ENTRIES` items, evenly spread from the first to the last.
    """
    last = len(items) - 1
    if last < MOST_ENTRIES:
        return [*enumerate(items)]
    steps = MOST_ENTRIES - 1
    return [(index, items[index]) for index in (last * step // steps for step in range(MOST_ENTRIES))]


def smallest_step(number: float) -> int | float:
    """Return 1 for an integer, else one unit of the last decimal place of the number."""
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return float(Decimal(1).scaleb(exponent)) if isinstance(exponent, int) and exponent < 0 else 1


def shifted(number: float) -> Iterator[float]:
    """Yield the numbers one step below and above, if they are in the range of documents."""
    step = Decimal(repr(smallest_step(number)))
    for other in (Decimal(repr(number)) - step, Decimal(repr(number)) + step):
        if abs(other) <= LARGEST_INTEGER:
            yield int(other) if other == other.to_integral_value() else float(other)
