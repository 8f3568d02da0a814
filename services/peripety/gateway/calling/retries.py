"""How often a call is made again, and when."""

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
    """Lets one call in ten be repeated, and up to ten more that were saved up."""

    def __init__(self) -> None:
        self._balance = _SAVED

    def earn(self) -> None:
        """Count a call."""
        self._balance = min(_SAVED, self._balance + _EARNED)

    def spend(self) -> bool:
        """Pay for a retry; False when there is not enough left."""
        if self._balance < 1:
            return False
        self._balance -= 1
        return True


def pause_before_retry(attempts: int, hint: float | None, random: Random) -> float | None:
    """Return the seconds to wait before a call is made again; None when it has been made often enough.

    The pause is drawn from a range that doubles with each attempt, so that callers who failed together do not
    come back together. It begins when the provider said that it would answer again; if that is too far off,
    the caller is told instead.

    Args:
        attempts: how often the call was made.
        hint: seconds after which the provider asked to come back; None when it did not.
        random: draws the pause.
    """
    earliest = hint or 0.0
    if attempts >= _ATTEMPTS or earliest > _LONGEST_HINT:
        return None
    return earliest + random.uniform(0, _FIRST_PAUSE * 2 ** (attempts - 1))
