"""Remaining budget of a request that continues with another service call."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from peripety.gateway.calling.budgets.model import Amount, BudgetKind, Scope
from peripety.gateway.calling.budgets.refusals import exhausted, out_of_time, shortage

if TYPE_CHECKING:
    from peripety.gateway.model import Budget

__all__ = ["remaining"]

_ANYTHING = Amount(1, 1, 1)


def remaining(budget: Budget, used: Amount, seconds: float) -> Budget:
    """Return the remaining budget.

    Args:
        budget: the budget.
        used: the usage so far.
        seconds: the elapsed time.

    Raises:
        ResourceExhaustedError: nothing is left (code BUDGET_EXHAUSTED).
    """
    if not (used + _ANYTHING).fits(budget):
        scope = Scope(BudgetKind.REQUEST, "", budget)
        raise exhausted(scope, shortage(budget, used, _ANYTHING), datetime.now(UTC))
    if budget.max_seconds is not None and seconds >= budget.max_seconds:
        raise out_of_time(budget.max_seconds)
    return replace(
        budget,
        max_calls=_less(budget.max_calls, used.calls),
        max_tokens=_less(budget.max_tokens, used.tokens),
        max_cost=_less(budget.max_cost, used.cost),
        max_seconds=None if budget.max_seconds is None else budget.max_seconds - seconds,
    )


def _less(cap: int | None, used: int) -> int | None:
    return None if cap is None else cap - used
