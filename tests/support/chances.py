"""What counts say of the rates behind them, and when a test that errs at times has erred too often."""

from __future__ import annotations

import math

__all__ = ["is_above", "is_below", "is_too_often"]

CERTAIN = 1e-4
"""How likely it is, at most, that something said here of a rate is wrong."""


def is_above(count: int, total: int, threshold: float) -> bool:
    """Whether the rate behind a count is surely more than a threshold."""
    return count > threshold * total and _by_chance(count, total, threshold) < CERTAIN


def is_below(count: int, total: int, threshold: float) -> bool:
    """Whether the rate behind a count is surely less than a threshold."""
    return count < threshold * total and _by_chance(count, total, threshold) < CERTAIN


def is_too_often(errors: int, trials: int, rate: float) -> bool:
    """Whether so many errors come about in one of a thousand cases only, when each trial has this chance."""
    fewer = sum(math.comb(trials, n) * rate**n * (1 - rate) ** (trials - n) for n in range(errors))
    return 1 - fewer < 1e-3


def _by_chance(count: int, total: int, threshold: float) -> float:
    """Chernoff's bound on the chance of a count that is as far from what a rate lets expect."""
    rate = count / total
    distance = _part(rate, threshold) + _part(1 - rate, 1 - threshold)
    return math.exp(-total * distance)


def _part(rate: float, threshold: float) -> float:
    if rate == 0:
        return 0.0
    return rate * math.log(rate / threshold) if threshold > 0 else math.inf
