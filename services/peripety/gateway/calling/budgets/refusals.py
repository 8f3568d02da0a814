"""The error of a budget that has no room for a call: which budget, what was used, and the way out."""

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
    BudgetKind.REQUEST: "raise its budget.{cap}, shorten the prompt, or ask for a shorter answer",
    BudgetKind.CONVERSATION: "start another conversation, or shorten the prompt",
    BudgetKind.DAY: "wait for the next day (UTC), or raise PERIPETY_DAILY_BUDGET",
}


@dataclass(frozen=True, slots=True)
class Shortage:
    """What there is too little of.

    Attributes:
        cap: the cap, by the name of its field: `max_calls`, `max_tokens` or `max_cost`.
        limit: that cap.
        used: what was used.
        needed: the least that the next call may need.
    """

    cap: str
    limit: int
    used: int
    needed: int


def shortage(caps: Budget, used: Amount, needed: Amount) -> Shortage:
    """Return what there is too little of: by the first cap that leaves too little, else by the first cap.

    Args:
        caps: the budget.
        used: what was used of it.
        needed: what the next call may need.
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
    """The error of a call that a budget has no room for.

    Args:
        scope: the budget.
        short: what there is too little of.
        now: the budget of a day is there again on the next one.
    """
    limit, used, needed = (
        in_dollars(amount) if short.cap == "max_cost" else str(amount)
        for amount in (short.limit, short.used, short.needed)
    )
    unit = {"max_calls": "calls", "max_tokens": "tokens", "max_cost": "dollars"}[short.cap]
    way_out = _WAYS_OUT[scope.kind].format(cap=short.cap)
    if short.used + short.needed <= short.limit:
        way_out = "calls under way have set the rest aside; try again when they have ended"
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return ResourceExhaustedError(
        f"The budget of the {scope.kind.value} is used up: {used} of {limit} {unit} are used, and the next"
        f" call may take {needed}: {way_out}",
        code=BUDGET_EXHAUSTED,
        details={"budget": scope.kind.value, "cap": short.cap, "limit": limit, "used": used},
        retry_after=(tomorrow - now).total_seconds() if scope.kind is BudgetKind.DAY else None,
    )


def out_of_time(seconds: float) -> ResourceExhaustedError:
    """The error of a request that took longer than its budget allows."""
    return ResourceExhaustedError(
        f"The budget of the request is used up: it allows {seconds:g} seconds: raise its budget.max_time, or"
        " ask for a shorter answer",
        code=BUDGET_EXHAUSTED,
        details={"budget": BudgetKind.REQUEST.value, "cap": "max_time", "limit": f"{seconds:g}"},
    )
