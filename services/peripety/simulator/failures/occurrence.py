"""Which matches a failure hits: all, the first ones, some of the next ones, or each with some probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.simulator.scenario.model import Failure

__all__ = ["occurs"]


def occurs(failure: Failure, ordinal: int, draw: Callable[[int], int]) -> bool:
    """Say whether a match fails.

    Args:
        failure: what is counted or left to chance.
        ordinal: how many matches of the same place there were before, in the scope that counts.
        draw: an unsigned 64-bit integer for each ordinal; has to be the same for every match of the scope.
    """
    if failure.probability is not None:
        return _share(draw(ordinal)) < failure.probability
    if failure.times is None:
        return True
    if failure.of is None:
        return ordinal < failure.times
    return ordinal < failure.of and _chosen(failure.times, failure.of, ordinal, draw)


def _chosen(times: int, of: int, ordinal: int, draw: Callable[[int], int]) -> bool:
    """Selection sampling: each match is taken with the odds that those still needed have among those left."""
    needed = times
    for each in range(ordinal + 1):
        taken = _share(draw(each)) * (of - each) < needed
        needed -= taken
    return taken


def _share(value: int) -> float:
    return (value >> 11) * 2.0**-53
