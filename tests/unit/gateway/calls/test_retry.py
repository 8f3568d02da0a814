"""Retries of a call: number and backoff."""

from __future__ import annotations

from random import Random

import pytest

from peripety.gateway.calls.retry import RetryBudget, backoff_delay


def pauses(attempts: int, hint: float | None = None) -> list[float]:
    random = Random(7)
    drawn = [backoff_delay(attempts, hint, random) for _ in range(1000)]
    return [pause for pause in drawn if pause is not None]


@pytest.mark.parametrize(("attempts", "longest"), [(1, 0.5), (2, 1.0)])
def test_a_pause_is_drawn_from_a_range_that_doubles(attempts: int, longest: float) -> None:
    drawn = pauses(attempts)
    assert len(drawn) == 1000
    assert 0 <= min(drawn) < longest * 0.02
    assert longest * 0.98 < max(drawn) <= longest


def test_the_same_seed_draws_the_same_pauses() -> None:
    assert pauses(1) == pauses(1)


def test_no_pause_ends_before_the_provider_answers_again() -> None:
    drawn = pauses(1, hint=7)
    assert min(drawn) >= 7
    assert max(drawn) <= 7.5


@pytest.mark.parametrize(("attempts", "hint"), [(3, None), (1, 61)])
def test_too_many_attempts_and_too_long_a_pause_are_left_to_the_caller(
    attempts: int,
    hint: float | None,
) -> None:
    assert pauses(attempts, hint) == []


def test_of_many_calls_one_in_ten_is_repeated() -> None:
    budget = RetryBudget()
    repeated = 0
    for _ in range(10_000):
        budget.deposit()
        repeated += sum(budget.withdraw() for _ in range(2))
    assert 1000 <= repeated <= 1010


def test_quiet_times_save_up_ten_retries_and_no_more() -> None:
    budget = RetryBudget()
    for _ in range(10_000):
        budget.deposit()
    assert sum(budget.withdraw() for _ in range(100)) == 10
