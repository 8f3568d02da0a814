"""What stands next to a number, and which of many items are looked at."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LARGEST_INTEGER", "MOST_ENTRIES", "shifted", "smallest_step", "some"]

MOST_ENTRIES = 32
"""How many entries of one list are looked at one by one; of longer lists, some."""

LARGEST_INTEGER = 2**53 - 1
"""No document has larger ones."""

_Item = TypeVar("_Item")


def some(items: Sequence[_Item]) -> list[tuple[int, _Item]]:
    """Items with their places: all, or of very many some, spread evenly from the first to the last."""
    last = len(items) - 1
    if last < MOST_ENTRIES:
        return [*enumerate(items)]
    steps = MOST_ENTRIES - 1
    return [(index, items[index]) for index in (last * step // steps for step in range(MOST_ENTRIES))]


def smallest_step(number: float) -> int | float:
    """One for an integer, else one of the last decimal that a number is written with."""
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return float(Decimal(1).scaleb(exponent)) if isinstance(exponent, int) and exponent < 0 else 1


def shifted(number: float) -> Iterator[float]:
    """The number before another, and the one after it, as far as documents can have them."""
    step = Decimal(repr(smallest_step(number)))
    for other in (Decimal(repr(number)) - step, Decimal(repr(number)) + step):
        if abs(other) <= LARGEST_INTEGER:
            yield int(other) if other == other.to_integral_value() else float(other)
