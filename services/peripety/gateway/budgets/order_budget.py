"""Budget of an order: what one order may use of language models, over all its model requests.

It limits calls, tokens, cost and time. The usage of failed requests counts too. `remaining_budget` limits a
request that continues with another service call.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.errors import DeadlineError, Finding, PeripetyError, ResourceExhaustedError
from peripety.gateway.budgets.types import (
    BUDGET_EXHAUSTED,
    BudgetAmount,
    BudgetKind,
    BudgetScope,
    budget_exhausted_error,
    find_exhausted,
    time_limit_error,
)
from peripety.gateway.calls.retry import is_explicit_rejection
from peripety.gateway.models.call_cost import format_dollars
from peripety.gateway.structured_output.validator import usage_until
from peripety.gateway.types.response import UsageTotal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.gateway.types.request import Budget


_MINIMUM = BudgetAmount(1, 1, 1)


def remaining_budget(budget: Budget, used: BudgetAmount, seconds: float) -> Budget:
    """Return the remaining budget.

    Args:
        budget: the budget.
        used: the usage so far.
        seconds: the elapsed time.

    Raises:
        ResourceExhaustedError: nothing is left (code BUDGET_EXHAUSTED).
    """
    if not (used + _MINIMUM).is_within(budget):
        scope = BudgetScope(BudgetKind.REQUEST, "", budget)
        raise budget_exhausted_error(scope, find_exhausted(budget, used, _MINIMUM), datetime.now(UTC))
    if budget.max_seconds is not None and seconds >= budget.max_seconds:
        raise time_limit_error(budget.max_seconds)
    return replace(
        budget,
        max_calls=_subtract(budget.max_calls, used.calls),
        max_tokens=_subtract(budget.max_tokens, used.tokens),
        max_cost=_subtract(budget.max_cost, used.cost),
        max_seconds=None if budget.max_seconds is None else budget.max_seconds - seconds,
    )


def _subtract(cap: int | None, used: int) -> int | None:
    return None if cap is None else cap - used


def usage_of_error(error: PeripetyError) -> UsageTotal:
    """Return the usage of a failed request; the cost is unknown if some may have been incurred."""
    return usage_until(error) or _minimum_usage(error)


def _minimum_usage(error: PeripetyError) -> UsageTotal:
    is_over = error.details.get("cap") == "max_time"
    if error.code == BUDGET_EXHAUSTED and not is_over:
        return UsageTotal()  # it was never sent
    if is_explicit_rejection(error) and not is_over:
        return UsageTotal(calls=1)
    return UsageTotal(calls=1, cost=None, cache_savings=None)


class OrderBudget:
    """Usage of one order, and the budget that remains for its next request.

    Time runs from the start of the order, checks and dry runs included.

    Args:
        budget: the budget of the whole order.
        max_answers: the maximum number of answers; None for no separate limit.
        now: monotonic clock, in seconds.

    Attributes:
        max_answers: number of answers requested so far.
        spent: their usage. The cost becomes unknown after a failed request that may have cost something.
    """

    def __init__(
        self,
        budget: Budget,
        max_answers: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget
        self._max_answers = max_answers
        self._now = now
        self._started_at = now()
        self.requested_answers = 0
        self.spent = UsageTotal()

    def find_exhausted_limit(self) -> Finding | None:
        """Return a finding that names the exhausted limit; None while every limit has room."""
        if self._max_answers is not None and self.requested_answers >= self._max_answers:
            return _limit_finding(f"limit of {self._max_answers} answers reached")
        try:
            self.remaining()
        except ResourceExhaustedError as error:
            return self._exhausted_finding(error)
        return None

    def remaining(self) -> Budget:
        """Return the budget of the next request; the gateway then stops before a cap is exceeded.

        Raises:
            ResourceExhaustedError: the budget is exhausted.
        """
        return remaining_budget(
            self._budget, BudgetAmount.from_usage(self.spent), self._now() - self._started_at
        )

    @property
    def is_expired(self) -> bool:
        """Return True if the time limit is exceeded."""
        most = self._budget.max_seconds
        return most is not None and self._now() - self._started_at >= most

    def count_request(self) -> None:
        """Count a requested answer."""
        self.requested_answers += 1

    def add_usage(self, spent: UsageTotal) -> None:
        """Add the usage of an answer."""
        self.spent += spent

    def add_failed_usage(self, error: PeripetyError) -> Finding | None:
        """Add the usage of a failed request.

        Returns:
            The exhausted limit if that caused the failure; None for any other failure.
        """
        finding = self._exhausted_finding(error)
        self.spent += usage_of_error(error)
        return finding

    def _exhausted_finding(self, error: PeripetyError) -> Finding | None:
        details, budget = error.details, self._budget
        if error.code != BUDGET_EXHAUSTED or details.get("budget") != BudgetKind.REQUEST.value:
            return None
        amount = BudgetAmount.from_usage(self.spent)
        match details.get("cap"):
            case "max_time":
                return _limit_finding(f"time limit of {budget.max_seconds:g} s exceeded")
            case "max_cost":
                limit, used = (
                    f"${format_dollars(budget.max_cost or 0)}",
                    f"${format_dollars(amount.cost)}",
                )
            case "max_calls":
                limit, used = f"{budget.max_calls} calls", f"{amount.calls}"
            case _:
                limit, used = f"{budget.max_tokens} tokens", f"{amount.tokens}"
        return _limit_finding(f"budget of {limit} exhausted: {used} used, and another answer may exceed it")


def _limit_finding(what: str) -> Finding:
    return Finding("BUDGET_EXHAUSTED", "", f"{what}; raise the limit")


T = TypeVar("T")


async def with_time_limit(seconds: float, events: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield events until a time limit in seconds.

    Raises:
        ResourceExhaustedError: the time limit is exceeded (code BUDGET_EXHAUSTED).
    """
    end = time.monotonic() + seconds
    async with closing(events):
        while True:
            try:
                async with call_context.timeout_at_deadline(end - time.monotonic()):
                    event = await anext(events)
            except StopAsyncIteration:
                return
            except DeadlineError as error:
                deadline = call_context.call_deadline()
                if deadline is not None and deadline <= end:
                    raise
                raise time_limit_error(seconds) from error
            yield event
