"""Schedule of a fault: all matches, the first ones, some of the next ones, or each with a probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.simulator.scenario.model import Failure

__all__ = ["occurs"]

_ROUNDS = 6


def occurs(failure: Failure, ordinal: int, draw: Callable[[int], int]) -> bool:
    """Return True if a match fails.

    Args:
        failure: its count or probability.
        ordinal: number of earlier matches of the same place, in the counting scope.
        draw: returns an unsigned 64-bit integer per index; the same for every match of the scope.
    """
    if failure.probability is not None:
        return _share(draw(ordinal)) < failure.probability
    if failure.times is None:
        return True
    if failure.of is None:
        return ordinal < failure.times
    return ordinal < failure.of and _shuffled(ordinal, failure.of, draw) < failure.times


def _shuffled(ordinal: int, count: int, draw: Callable[[int], int]) -> int:
    """Return the position of an ordinal in a pseudo-random permutation of the first `count` numbers.

    A Feistel network permutes all numbers of that many bits. Results out of range are permuted again (cycle
    walking). Each position costs the same, without a list of all of them.
    """
    half = ((count - 1).bit_length() + 1) // 2 or 1
    mask = (1 << half) - 1
    place = ordinal
    while True:
        left, right = place >> half, place & mask
        for turn in range(_ROUNDS):
            left, right = right, left ^ (draw(turn << half | right) & mask)
        place = left << half | right
        if place < count:
            return place


def _share(value: int) -> float:
    return (value >> 11) * 2.0**-53
