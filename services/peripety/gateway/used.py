"""Usage of a failed request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.calling.budgets.refusals import BUDGET_EXHAUSTED
from peripety.gateway.calling.faults import was_answered
from peripety.gateway.model import Spent
from peripety.gateway.objects.structured import used_until

if TYPE_CHECKING:
    from peripety.errors import PeripetyError

__all__ = ["used_by"]


def used_by(error: PeripetyError) -> Spent:
    """Return the usage of a failed request; the cost is unknown if some may have been incurred."""
    return used_until(error) or _at_least(error)


def _at_least(error: PeripetyError) -> Spent:
    is_over = error.details.get("cap") == "max_time"
    if error.code == BUDGET_EXHAUSTED and not is_over:
        return Spent()  # it was never sent
    if was_answered(error) and not is_over:
        return Spent(calls=1)
    return Spent(calls=1, cost=None, cache_savings=None)
