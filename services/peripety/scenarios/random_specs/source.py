"""Random draws of a specification: a stream over the engine's keyed random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from peripety import sim

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_INDEX", "Source"]

T = TypeVar("T")

MAX_INDEX = 2**32 - 1
"""The largest index under one seed; beyond it draws would repeat."""

_STREAM = "random_specs"


class Source:
    """Draw stream of one specification, the same on every machine and backend.

    Args:
        seed: an unsigned 64-bit integer.
        index: the number of the specification, up to `MAX_INDEX`.
    """

    def __init__(self, seed: int, index: int) -> None:
        self._seed = seed
        self._index = index
        self._drawn = 0

    def bits(self) -> int:
        """Draw 64 bits."""
        value = sim.draw(self._seed, _STREAM, self._index, self._drawn)
        self._drawn += 1
        return value

    def below(self, count: int) -> int:
        """Draw an integer from 0 to count - 1."""
        return ((self.bits() >> 32) * count) >> 32

    def between(self, least: int, most: int) -> int:
        """Draw an integer from a range, both ends included."""
        return least + self.below(most - least + 1)

    def chance(self, percent: int) -> bool:
        """Return True with a probability in per cent."""
        return self.below(100) < percent

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of the options."""
        return options[self.below(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return the options in random order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]
