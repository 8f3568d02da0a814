"""Types of budgets of requests, conversations and days, checked before each provider call.

`BudgetLedger` is the protocol of the ledger that tracks them. Errors name the budget, its usage and the
remedy.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from peripety.errors import ResourceExhaustedError
from peripety.gateway.models.call_cost import format_dollars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.types.request import Budget
    from peripety.gateway.types.response import UsageTotal


@dataclass(frozen=True, slots=True)
class BudgetAmount:
    """Usage that counts towards budgets.

    Attributes:
        calls: requests sent to providers.
        tokens: input and output tokens together.
        cost: cost in 10^-12 dollars.
    """

    calls: int = 0
    tokens: int = 0
    cost: int = 0

    @classmethod
    def from_usage(cls, spent: UsageTotal) -> BudgetAmount:
        """Return the amount of a usage; an unknown cost counts as nothing."""
        tokens = spent.usage.input_tokens + spent.usage.output_tokens
        return cls(spent.calls, tokens, spent.cost or 0)

    def __add__(self, other: BudgetAmount) -> BudgetAmount:
        """Return the sum of both amounts."""
        return BudgetAmount(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: BudgetAmount) -> BudgetAmount:
        """Return this amount minus the other one."""
        return BudgetAmount(self.calls - other.calls, self.tokens - other.tokens, self.cost - other.cost)

    def is_within(self, budget: Budget) -> bool:
        """Return True if the amount is within the budget."""
        caps = (budget.max_calls, budget.max_tokens, budget.max_cost)
        amounts = (self.calls, self.tokens, self.cost)
        return all(cap is None or amount <= cap for cap, amount in zip(caps, amounts, strict=True))


class BudgetKind(Enum):
    """Owner of a budget."""

    REQUEST = "request"
    CONVERSATION = "conversation"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class BudgetScope:
    """One budget that calls count towards.

    Attributes:
        kind: the kind of owner.
        name: the conversation's id, or the day, such as `2026-01-31`.
        caps: its caps; a ledger ignores the time limit.
    """

    kind: BudgetKind
    name: str
    caps: Budget

    @property
    def key(self) -> str:
        """Return a unique key of the budget."""
        return f"{self.kind.value}:{self.name}"


@dataclass(frozen=True, slots=True)
class LedgerHold:
    """An amount reserved for a call.

    Attributes:
        number: id of the hold.
        scopes: the budgets that it counts towards.
        amount: the reserved amount.
    """

    number: str
    scopes: tuple[BudgetScope, ...]
    amount: BudgetAmount


@dataclass(frozen=True, slots=True)
class ReservationRejected:
    """A reservation that a budget has rejected.

    Attributes:
        used: settled usage of each requested budget, without open reservations; None for a budget that is not
            open yet.
        exhausted_index: index of the first budget that lacks room or is not open.
    """

    used: tuple[BudgetAmount | None, ...]
    exhausted_index: int


class BudgetLedger(Protocol):
    """Ledger of budgets shared by several requests. Each call is atomic.

    An implementation for several replicas gives the same guarantee as one in memory: the reservations never
    exceed the budget.
    """

    async def open(self, scope: BudgetScope, used: BudgetAmount) -> None:
        """Open a budget; no effect if it is already open.

        Args:
            scope: the budget.
            used: its usage so far.
        """
        ...

    async def reserve(
        self,
        scopes: Sequence[BudgetScope],
        amount: BudgetAmount,
    ) -> LedgerHold | ReservationRejected:
        """Reserve an amount in all budgets, or in none of them."""
        ...

    async def settle(self, hold: LedgerHold, used: BudgetAmount) -> None:
        """Settle the hold of a finished call; each hold is settled once."""
        ...

    async def wait_for_release(self, seconds: float) -> None:
        """Wait for budget that may have been returned since the last rejection, for at most `seconds`."""
        ...


class UsageHistory(Protocol):
    """Source of the usage of budgets from before this process started or last read it."""

    async def get_usage(self, scope: BudgetScope) -> BudgetAmount:
        """Return the usage of a budget so far.

        Raises:
            UnavailableError: the usage cannot be read now.
        """
        ...


BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"

_REMEDIES = {
    BudgetKind.REQUEST: "raise its budget.{cap}, shorten the prompt, or request a shorter answer",
    BudgetKind.CONVERSATION: "start another conversation, or shorten the prompt",
    BudgetKind.DAY: "wait for the next day (UTC), or raise PERIPETY_DAILY_BUDGET",
}


@dataclass(frozen=True, slots=True)
class BudgetShortage:
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


def find_exhausted(caps: Budget, used: BudgetAmount, needed: BudgetAmount) -> BudgetShortage:
    """Return the first cap without enough room, else the first cap.

    Args:
        caps: the budget.
        used: its usage.
        needed: the estimated usage of the next call.
    """
    shortages = [
        BudgetShortage(name, cap, spent, amount)
        for name, cap, spent, amount in (
            ("max_calls", caps.max_calls, used.calls, needed.calls),
            ("max_tokens", caps.max_tokens, used.tokens, needed.tokens),
            ("max_cost", caps.max_cost, used.cost, needed.cost),
        )
        if cap is not None
    ]
    return next((each for each in shortages if each.used + each.needed > each.limit), shortages[0])


def budget_exhausted_error(
    scope: BudgetScope,
    cap_shortage: BudgetShortage,
    now: datetime,
) -> ResourceExhaustedError:
    """Return the error of a call that does not fit into a budget.

    Args:
        scope: the budget.
        cap_shortage: the cap without room.
        now: current time; a daily budget resets on the next day.
    """
    limit, used, needed = (
        format_dollars(amount) if cap_shortage.cap == "max_cost" else str(amount)
        for amount in (cap_shortage.limit, cap_shortage.used, cap_shortage.needed)
    )
    unit = {"max_calls": "calls", "max_tokens": "tokens", "max_cost": "dollars"}[cap_shortage.cap]
    way_out = _REMEDIES[scope.kind].format(cap=cap_shortage.cap)
    if cap_shortage.used + cap_shortage.needed <= cap_shortage.limit:
        way_out = "calls in progress have reserved the rest; try again when they have ended"
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return ResourceExhaustedError(
        f"budget of the {scope.kind.value} exhausted: {used} of {limit} {unit} used, and the next call may"
        f" need {needed}; {way_out}",
        code=BUDGET_EXHAUSTED,
        details={"budget": scope.kind.value, "cap": cap_shortage.cap, "limit": limit, "used": used},
        retry_after=(tomorrow - now).total_seconds() if scope.kind is BudgetKind.DAY else None,
    )


def time_limit_error(seconds: float) -> ResourceExhaustedError:
    """Return the error of a request that exceeded the time limit of its budget."""
    return ResourceExhaustedError(
        f"budget of the request exhausted: time limit of {seconds:g} seconds exceeded; raise its"
        " budget.max_time, or request a shorter answer",
        code=BUDGET_EXHAUSTED,
        details={"budget": BudgetKind.REQUEST.value, "cap": "max_time", "limit": f"{seconds:g}"},
    )
