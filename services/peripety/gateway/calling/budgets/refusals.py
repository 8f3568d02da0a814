"""Errors of exhausted budgets: they name the budget, its usage and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from peripety.errors import ResourceExhaustedError
from peripety.gateway.calling.budgets.model import BudgetKind
from peripety.gateway.catalogue import in_dollars

if TYPE_CHECKING:
    from peripety.gateway.calling.budgets.model import Amount, Scope
    from peripety.gateway.model import Budget

__all__ = ["BUDGET_EXHAUSTED", "Shortage", "exhausted", "out_of_time", "shortage"]

BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"

_WAYS_OUT = {
    BudgetKind.REQUEST: "raise its budget.{cap}, shorten the prompt, or request a shorter answer",
    BudgetKind.CONVERSATION: "start another conversation, or shorten the prompt",
    BudgetKind.DAY: "wait for the next day (UTC), or raise PERIPETY_DAILY_BUDGET",
}


@dataclass(frozen=True, slots=True)
class Shortage:
    """A cap that has no room for a call.

    Attributes:
        cap: the field of the cap: `max_calls`, `max_tokens` or `max_cost`.
        limit: the cap.
        used: the usage.
        needed: the minimum that the next call may need.
    """

    cap: str
    limit: int
    used: int
    needed: int


def shortage(caps: Budget, used: Amount, needed: Amount) -> Shortage:
    """Return the first cap without enough room, else the first cap.

    Args:
        caps: the budget.
        used: its usage.
        needed: the estimated usage of the next call.
    """
    shortages = [
        Shortage(name, cap, spent, amount)
        for name, cap, spent, amount in (
            ("max_calls", caps.max_calls, used.calls, needed.calls),
            ("max_tokens", caps.max_tokens, used.tokens, needed.tokens),
            ("max_cost", caps.max_cost, used.cost, needed.cost),
        )
        if cap is not None
    ]
    return next((each for each in shortages if each.used + each.needed > each.limit), shortages[0])


def exhausted(scope: Scope, short: Shortage, now: datetime) -> ResourceExhaustedError:
    """Return the error of a call that does not fit into a budget.

    Args:
        scope: the budget.
        short: the cap without room.
        now: current time; a daily budget resets on the next day.
    """
    limit, used, needed = (
        in_dollars(amount) if short.cap == "max_cost" else str(amount)
        for amount in (short.limit, short.used, short.needed)
    )
    unit = {"max_calls": "calls", "max_tokens": "tokens", "max_cost": "dollars"}[short.cap]
    way_out = _WAYS_OUT[scope.kind].format(cap=short.cap)
    if short.used + short.needed <= short.limit:
        way_out = "calls in progress have reserved the rest; try again when they have ended"
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return ResourceExhaustedError(
        f"budget of the {scope.kind.value} exhausted: {used} of {limit} {unit} used, and the next call may"
        f" need {needed}; {way_out}",
        code=BUDGET_EXHAUSTED,
        details={"budget": scope.kind.value, "cap": short.cap, "limit": limit, "used": used},
        retry_after=(tomorrow - now).total_seconds() if scope.kind is BudgetKind.DAY else None,
    )


def out_of_time(seconds: float) -> ResourceExhaustedError:
    """Return the error of a request that exceeded the time limit of its budget."""
    return ResourceExhaustedError(
        f"budget of the request exhausted: time limit of {seconds:g} seconds exceeded; raise its"
        " budget.max_time, or request a shorter answer",
        code=BUDGET_EXHAUSTED,
        details={"budget": BudgetKind.REQUEST.value, "cap": "max_time", "limit": f"{seconds:g}"},
    )
