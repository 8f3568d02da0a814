"""Estimation of a rate from a count: the intervals and the sequential test."""

from __future__ import annotations

import random

import pytest

from peripety.certification.options import BLOCK
from peripety.certification.rate_interval import ThresholdSide, compare_to_threshold, rate_interval

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
    count: int,
    total: int,
    low: float,
    high: float,
) -> None:
    assert rate_interval(count, total) == pytest.approx((low, high), abs=5e-5)


def test_an_interval_holds_the_rate_that_was_seen() -> None:
    for total in (1, 7, 64, 1000):
        for count in range(total + 1):
            low, high = rate_interval(count, total)
            assert 0 <= low <= count / total <= high <= 1


def test_a_few_runs_decide_nothing_near_the_threshold() -> None:
    assert compare_to_threshold(16, 64, 0.25) is None


def test_one_survivor_refutes_that_all_are_lost() -> None:
    assert compare_to_threshold(63, 64, 1.0) is ThresholdSide.BELOW
    assert compare_to_threshold(64, 64, 1.0) is None
    assert compare_to_threshold(1024, 1024, 1.0) is ThresholdSide.ABOVE


@pytest.mark.parametrize("threshold", [1e-6, 0.01, 0.5, 0.99, 1.0])
def test_every_threshold_can_be_tested(threshold: float) -> None:
    assert compare_to_threshold(0, 10**9, threshold) is ThresholdSide.BELOW
    assert compare_to_threshold(10**9, 10**9, threshold) is ThresholdSide.ABOVE


def verdict_at(rate: float, threshold: float, dice: random.Random) -> ThresholdSide:
    """Return the result of the sequential test for a biased coin, checked after each block."""
    count = total = 0
    while total < CAP:
        count += sum(dice.random() < rate for _ in range(BLOCK))
        total += BLOCK
        side = compare_to_threshold(count, total, threshold)
        if side is not None:
            return side
    return ThresholdSide.ABOVE if count / total >= threshold else ThresholdSide.BELOW


@pytest.mark.parametrize(
    ("rate", "threshold", "side"),
    [
        (0.21, 0.25, ThresholdSide.BELOW),
        (0.29, 0.25, ThresholdSide.ABOVE),
        (0.71, 0.75, ThresholdSide.BELOW),
        (0.79, 0.75, ThresholdSide.ABOVE),
        (0.04, 0.08, ThresholdSide.BELOW),
        (0.99, 0.95, ThresholdSide.ABOVE),
    ],
)
def test_outside_of_the_indifference_it_errs_in_one_case_of_a_hundred(
    rate: float,
    threshold: float,
    side: ThresholdSide,
) -> None:
    dice = random.Random(20260101)
    wrong = sum(verdict_at(rate, threshold, dice) is not side for _ in range(300))
    assert wrong <= 6
