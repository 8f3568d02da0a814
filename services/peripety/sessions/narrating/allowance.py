"""Budget of a narration: time, calls, tokens and money."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from peripety import context
from peripety.gateway.calling.budgets import Amount, remaining
from peripety.gateway.model import Budget, Spent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.sessions.model import NarratorOptions

__all__ = ["Allowance"]

# Part of the caller's time reserved for storing the turn.
_RESERVE_SECONDS = 1.0


class Allowance:
    """Budget and usage of one narration.

    Args:
        seconds: time limit; never more than the caller has left.
        options: budgets of the turn and of the session.
        before: usage of the session before the turn.
    """

    def __init__(self, seconds: float, options: NarratorOptions, before: Spent) -> None:
        left = context.remaining()
        if left is not None:
            seconds = min(seconds, left - min(_RESERVE_SECONDS, left / 4))
        self._began = time.monotonic()
        self._until = self._began + seconds
        self._options = options
        self._before = before
        self._used = Spent()
        self._under_way = Spent()

    @property
    def used(self) -> Spent:
        """Known usage of all calls so far."""
        return self._used + self._under_way

    @property
    def seconds(self) -> float:
        """Remaining seconds, never negative."""
        return max(0.0, self._until - time.monotonic())

    def note(self, spent: Spent, *, ended: bool = True) -> None:
        """Record the usage of a model call.

        Args:
            spent: total usage of the call so far.
            ended: True if that is final.
        """
        self._under_way = spent
        if ended:
            self._used, self._under_way = self.used, Spent()

    def budget(self) -> Budget | None:
        """Return the budget of the next call: the remainder of both budgets, or None for no limit.

        Raises:
            ResourceExhaustedError: the budget is used up (code BUDGET_EXHAUSTED).
        """
        turn, session = self._options.turn_budget, self._options.session_budget
        left = []
        if turn is not None:
            left.append(remaining(turn, _amount(self.used), time.monotonic() - self._began))
        if session is not None:
            left.append(remaining(session, _amount(self._before + self.used), 0.0))
        return _least(left) if left else None


def _amount(spent: Spent) -> Amount:
    tokens = spent.usage.input_tokens + spent.usage.output_tokens
    return Amount(spent.calls, tokens, spent.cost or 0)


def _least(budgets: list[Budget]) -> Budget:
    """Return the budget that satisfies all given budgets."""
    return Budget(
        max_calls=_smallest(budget.max_calls for budget in budgets),
        max_tokens=_smallest(budget.max_tokens for budget in budgets),
        max_cost=_smallest(budget.max_cost for budget in budgets),
        max_seconds=min(
            (budget.max_seconds for budget in budgets if budget.max_seconds is not None), default=None
        ),
    )


def _smallest(caps: Iterable[int | None]) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)
