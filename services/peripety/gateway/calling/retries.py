"""Retries: the retry budget and the delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

__all__ = ["RetryBudget", "pause_before_retry"]

_ATTEMPTS = 3
_FIRST_PAUSE = 0.5
_LONGEST_HINT = 60.0
_SAVED = 10.0
_EARNED = 0.1


class RetryBudget:
    """Retry budget: one retry per ten calls, plus up to ten saved ones."""

    def __init__(self) -> None:
        self._balance = _SAVED

    def earn(self) -> None:
        """Count a call, which adds a tenth of a retry."""
        self._balance = min(_SAVED, self._balance + _EARNED)

    def spend(self) -> bool:
        """Withdraw one retry; return False if the budget is exhausted."""
        if self._balance < 1:
            return False
        self._balance -= 1
        return True


def pause_before_retry(attempts: int, hint: float | None, random: Random) -> float | None:
    """Return the delay before a retry in seconds; None after the last attempt.

    Exponential backoff with jitter: the range doubles with each attempt, so that clients that failed together
    do not retry together. The delay starts at the time that the provider has named. If that time is too far
    off, the call fails instead.

    Args:
        attempts: number of attempts so far.
        hint: delay requested by the provider, in seconds; None without one.
        random: source of the jitter.
    """
    earliest = hint or 0.0
    if attempts >= _ATTEMPTS or earliest > _LONGEST_HINT:
        return None
    return earliest + random.uniform(0, _FIRST_PAUSE * 2 ** (attempts - 1))
