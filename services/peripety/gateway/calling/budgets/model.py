"""What a budget is, and who keeps account of it."""

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
    """What counts towards budgets.

    Attributes:
        calls: requests sent to providers.
        tokens: input and output together.
        cost: money, in 10^-12 dollars.
    """

    calls: int = 0
    tokens: int = 0
    cost: int = 0

    def __add__(self, other: Amount) -> Amount:
        """Both amounts together."""
        return Amount(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: Amount) -> Amount:
        """What is left of this amount without the other one."""
        return Amount(self.calls - other.calls, self.tokens - other.tokens, self.cost - other.cost)

    def fits(self, budget: Budget) -> bool:
        """Whether it is no more than a budget allows."""
        caps = (budget.max_calls, budget.max_tokens, budget.max_cost)
        amounts = (self.calls, self.tokens, self.cost)
        return all(cap is None or amount <= cap for cap, amount in zip(caps, amounts, strict=True))


class BudgetKind(Enum):
    """Whose budget it is."""

    REQUEST = "request"
    CONVERSATION = "conversation"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Scope:
    """A budget that calls count towards.

    Attributes:
        kind: whose it is.
        name: which one: the conversation's id, or the day, such as `2026-01-31`.
        caps: what it allows; its time is no concern of a ledger.
    """

    kind: BudgetKind
    name: str
    caps: Budget

    @property
    def key(self) -> str:
        """A name that no other budget has."""
        return f"{self.kind.value}:{self.name}"


@dataclass(frozen=True, slots=True)
class Hold:
    """What was set aside for a call.

    Attributes:
        number: which one it is.
        scopes: the budgets that it counts towards.
        amount: how much.
    """

    number: str
    scopes: tuple[Scope, ...]
    amount: Amount


@dataclass(frozen=True, slots=True)
class Refused:
    """A budget does not have room for a call.

    Attributes:
        used: what was used of each budget that was asked for, without what is set aside for calls under way;
            None for one that is not open yet.
        short: the place of the first budget without room, or not open.
    """

    used: tuple[Amount | None, ...]
    short: int


class Ledger(Protocol):
    """Keeps account of budgets that several requests share. Each of its calls is one step.

    One for several replicas is as good as one in a process: both never set aside more than there is.
    """

    async def open(self, scope: Scope, used: Amount) -> None:
        """Begin to keep account of a budget; without effect on one that is open.

        Args:
            scope: the budget.
            used: what was used of it before.
        """
        ...

    async def reserve(self, scopes: Sequence[Scope], amount: Amount) -> Hold | Refused:
        """Set an amount aside in all budgets, or in none of them."""
        ...

    async def settle(self, hold: Hold, used: Amount) -> None:
        """Account for a call that has ended; each hold is settled once."""
        ...

    async def settled(self, seconds: float) -> None:
        """Wait until something may have been given back since the last refusal, or for so many seconds."""
        ...


class History(Protocol):
    """Remembers what was used of budgets before this process began, or before it last asked."""

    async def used(self, scope: Scope) -> Amount:
        """What was used of a budget so far.

        Raises:
            UnavailableError: that cannot be read now.
        """
        ...
