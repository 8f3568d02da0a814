"""Types of budgets, and the protocol of the ledger that tracks them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.model import Budget

__all__ = ["Amount", "BudgetKind", "History", "Hold", "Ledger", "Refused", "Scope"]


@dataclass(frozen=True, slots=True)
class Amount:
    """Usage that counts towards budgets.

    Attributes:
        calls: requests sent to providers.
        tokens: input and output tokens together.
        cost: cost in 10^-12 dollars.
    """

    calls: int = 0
    tokens: int = 0
    cost: int = 0

    def __add__(self, other: Amount) -> Amount:
        """Return the sum of both amounts."""
        return Amount(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: Amount) -> Amount:
        """Return this amount minus the other one."""
        return Amount(self.calls - other.calls, self.tokens - other.tokens, self.cost - other.cost)

    def fits(self, budget: Budget) -> bool:
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
class Scope:
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
class Hold:
    """An amount reserved for a call.

    Attributes:
        number: id of the hold.
        scopes: the budgets that it counts towards.
        amount: the reserved amount.
    """

    number: str
    scopes: tuple[Scope, ...]
    amount: Amount


@dataclass(frozen=True, slots=True)
class Refused:
    """A reservation that a budget has rejected.

    Attributes:
        used: settled usage of each requested budget, without open reservations; None for a budget that is not
            open yet.
        short: index of the first budget that lacks room or is not open.
    """

    used: tuple[Amount | None, ...]
    short: int


class Ledger(Protocol):
    """Ledger of budgets shared by several requests. Each call is atomic.

    An implementation for several replicas gives the same guarantee as one in memory: the reservations never
    exceed the budget.
    """

    async def open(self, scope: Scope, used: Amount) -> None:
        """Open a budget; no effect if it is already open.

        Args:
            scope: the budget.
            used: its usage so far.
        """
        ...

    async def reserve(self, scopes: Sequence[Scope], amount: Amount) -> Hold | Refused:
        """Reserve an amount in all budgets, or in none of them."""
        ...

    async def settle(self, hold: Hold, used: Amount) -> None:
        """Settle the hold of a finished call; each hold is settled once."""
        ...

    async def settled(self, seconds: float) -> None:
        """Wait for budget that may have been returned since the last rejection, for at most `seconds`."""
        ...


class History(Protocol):
    """Source of the usage of budgets from before this process started or last read it."""

    async def used(self, scope: Scope) -> Amount:
        """Return the usage of a budget so far.

        Raises:
            UnavailableError: the usage cannot be read now.
        """
        ...
