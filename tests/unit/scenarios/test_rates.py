"""What a count says of a rate: the intervals and the sequential test."""

from __future__ import annotations

import random

import pytest

from peripety.scenarios.gate import BLOCK
from peripety.scenarios.rates import Side, interval, side_of

CAP = 4096


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        (5, 20, 0.1119, 0.4687),
        (50, 100, 0.4038, 0.5962),
        (1, 10, 0.0179, 0.4042),
        (0, 10, 0.0, 0.3085),
        (10, 10, 0.6915, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_interval_is_wilsons_and_exact_at_both_ends(
    count: int, total: int, low: float, high: float
) -> None:
    assert interval(count, total) == pytest.approx((low, high), abs=5e-5)


def test_an_interval_holds_the_rate_that_was_seen() -> None:
    for total in (1, 7, 64, 1000):
        for count in range(total + 1):
            low, high = interval(count, total)
            assert 0 <= low <= count / total <= high <= 1


def test_a_few_runs_decide_nothing_near_the_threshold() -> None:
    assert side_of(16, 64, 0.25) is None


def test_one_survivor_refutes_that_all_are_lost() -> None:
    assert side_of(63, 64, 1.0) is Side.BELOW
    assert side_of(64, 64, 1.0) is None
    assert side_of(1024, 1024, 1.0) is Side.ABOVE


@pytest.mark.parametrize("threshold", [1e-6, 0.01, 0.5, 0.99, 1.0])
def test_every_threshold_can_be_tested(threshold: float) -> None:
    assert side_of(0, 10**9, threshold) is Side.BELOW
    assert side_of(10**9, 10**9, threshold) is Side.ABOVE


def verdict_at(rate: float, threshold: float, dice: random.Random) -> Side:
    """What the test says of a coin, looked at after each block."""
    count = total = 0
    while total < CAP:
        count += sum(dice.random() < rate for _ in range(BLOCK))
        total += BLOCK
        side = side_of(count, total, threshold)
        if side is not None:
            return side
    return Side.ABOVE if count / total >= threshold else Side.BELOW


@pytest.mark.parametrize(
    ("rate", "threshold", "side"),
    [
        (0.21, 0.25, Side.BELOW),
        (0.29, 0.25, Side.ABOVE),
        (0.71, 0.75, Side.BELOW),
        (0.79, 0.75, Side.ABOVE),
        (0.04, 0.08, Side.BELOW),
        (0.99, 0.95, Side.ABOVE),
    ],
)
def test_outside_of_the_indifference_it_errs_in_one_case_of_a_hundred(
    rate: float, threshold: float, side: Side
) -> None:
    dice = random.Random(20260101)
    wrong = sum(verdict_at(rate, threshold, dice) is not side for _ in range(300))
    assert wrong <= 6
