"""Chance for authors of random specifications: the engine's keyed draws, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from peripety import sim

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_INDEX", "Source"]

T = TypeVar("T")

MAX_INDEX = 2**32 - 1
"""The largest number of a specification under one seed; beyond it draws would repeat."""

_STREAM = "random_specs"


class Source:
    """What one specification draws: the same on every machine and both cores.

    Args:
        seed: an unsigned 64-bit integer.
        index: number of the specification, up to `MAX_INDEX`.
    """

    def __init__(self, seed: int, index: int) -> None:
        self._seed = seed
        self._index = index
        self._drawn = 0

    def bits(self) -> int:
        """The next 64 bits."""
        value = sim.draw(self._seed, _STREAM, self._index, self._drawn)
        self._drawn += 1
        return value

    def below(self, count: int) -> int:
        """A choice among 0 … count - 1."""
        return ((self.bits() >> 32) * count) >> 32

    def between(self, least: int, most: int) -> int:
        """An integer, both ends included."""
        return least + self.below(most - least + 1)

    def chance(self, percent: int) -> bool:
        """Whether something happens that does so in so many cases of a hundred."""
        return self.below(100) < percent

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All options in another order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]
