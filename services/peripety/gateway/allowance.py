"""Budget of an order: what one order may use of language models, over all its model requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from peripety.errors import Finding, PeripetyError, ResourceExhaustedError
from peripety.gateway.calling.budgets import Amount, BudgetKind, remaining
from peripety.gateway.calling.budgets.refusals import BUDGET_EXHAUSTED
from peripety.gateway.catalogue import in_dollars
from peripety.gateway.model import Spent
from peripety.gateway.used import used_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.gateway.model import Budget

__all__ = ["Allowance"]


class Allowance:
    """Usage of one order, and the budget that remains for its next request.

    Time runs from the start of the order, checks and dry runs included.

    Args:
        budget: the budget of the whole order.
        answers: the maximum number of answers; None for no separate limit.
        now: monotonic clock, in seconds.

    Attributes:
        answers: number of answers requested so far.
        spent: their usage. The cost becomes unknown after a failed request that may have cost something.
    """

    def __init__(
        self, budget: Budget, answers: int | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._budget = budget
        self._most = answers
        self._now = now
        self._begun = now()
        self.answers = 0
        self.spent = Spent()

    def used_up(self) -> Finding | None:
        """Return a finding that names the exhausted limit; None while every limit has room."""
        if self._most is not None and self.answers >= self._most:
            return _used_up(f"limit of {self._most} answers reached")
        try:
            self.left()
        except ResourceExhaustedError as error:
            return self._refusal(error)
        return None

    def left(self) -> Budget:
        """Return the budget of the next request; the gateway then stops before a cap is exceeded.

        Raises:
            ResourceExhaustedError: the budget is exhausted.
        """
        usage = self.spent.usage
        used = Amount(self.spent.calls, usage.input_tokens + usage.output_tokens, self.spent.cost or 0)
        return remaining(self._budget, used, self._now() - self._begun)

    @property
    def is_late(self) -> bool:
        """Return True if the time limit is exceeded."""
        most = self._budget.max_seconds
        return most is not None and self._now() - self._begun >= most

    def ask(self) -> None:
        """Count a requested answer."""
        self.answers += 1

    def count(self, spent: Spent) -> None:
        """Add the usage of an answer."""
        self.spent += spent

    def failed(self, error: PeripetyError) -> Finding | None:
        """Add the usage of a failed request.

        Returns:
            The exhausted limit if that caused the failure; None for any other failure.
        """
        finding = self._refusal(error)
        self.spent += used_by(error)
        return finding

    def _refusal(self, error: PeripetyError) -> Finding | None:
        details, budget = error.details, self._budget
        if error.code != BUDGET_EXHAUSTED or details.get("budget") != BudgetKind.REQUEST.value:
            return None
        usage = self.spent.usage
        match details.get("cap"):
            case "max_time":
                return _used_up(f"time limit of {budget.max_seconds:g} s exceeded")
            case "max_cost":
                limit, used = f"${in_dollars(budget.max_cost or 0)}", f"${in_dollars(self.spent.cost or 0)}"
            case "max_calls":
                limit, used = f"{budget.max_calls} calls", str(self.spent.calls)
            case _:
                limit, used = f"{budget.max_tokens} tokens", str(usage.input_tokens + usage.output_tokens)
        return _used_up(f"budget of {limit} exhausted: {used} used, and another answer may exceed it")


def _used_up(what: str) -> Finding:
    return Finding("BUDGET_USED_UP", "", f"{what}; raise the limit")
