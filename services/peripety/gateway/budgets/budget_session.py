"""Budgets of one request: reserve, settle; ledger in memory.

Budget ledger in the memory of this process.

Budgets of one request, over all its provider calls.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from peripety.gateway.budgets.types import (
    BudgetAmount,
    BudgetKind,
    BudgetScope,
    LedgerHold,
    ReservationRejected,
    budget_exhausted_error,
    find_exhausted,
)
from peripety.gateway.calls.rate_limiter import max_affordable_output
from peripety.gateway.models.model_data import max_cost, unknown_price_error
from peripety.gateway.types.request import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.core.call_context import Clock
    from peripety.core.config import DailyBudget
    from peripety.gateway.budgets.types import BudgetLedger, UsageHistory
    from peripety.gateway.calls.rate_limiter import CallUsage
    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.request import GenerateRequest


_MAX_ENTRIES = 1024


@dataclass(slots=True)
class _LedgerEntry:
    used: BudgetAmount
    held: BudgetAmount


class MemoryBudgetLedger:
    """`Ledger` in memory.

    Budgets that are idle for long are dropped; their usage is then read from the history again.

    Args:
        clock: used to wait.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, _LedgerEntry] = OrderedDict()
        self._numbers = count()
        self._news = asyncio.Event()

    async def open(self, scope: BudgetScope, used: BudgetAmount) -> None:
        """See `Ledger.open`."""
        self._entries.setdefault(scope.key, _LedgerEntry(used, BudgetAmount()))
        if len(self._entries) > _MAX_ENTRIES:
            key, oldest = self._entries.popitem(last=False)
            if oldest.held != BudgetAmount():
                self._entries[key] = oldest

    async def reserve(
        self, scopes: Sequence[BudgetScope], amount: BudgetAmount
    ) -> LedgerHold | ReservationRejected:
        """See `Ledger.reserve`."""
        entries = [self._entries.get(scope.key) for scope in scopes]
        for index, (scope, entry) in enumerate(zip(scopes, entries, strict=True)):
            if entry is None or not (entry.used + entry.held + amount).fits(scope.caps):
                self._news.clear()
                return ReservationRejected(
                    tuple(None if entry is None else entry.used for entry in entries), index
                )
        for scope in scopes:
            self._entries[scope.key].held += amount
            self._entries.move_to_end(scope.key)
        return LedgerHold(str(next(self._numbers)), tuple(scopes), amount)

    async def settle(self, hold: LedgerHold, used: BudgetAmount) -> None:
        """See `Ledger.settle`."""
        for scope in hold.scopes:
            entry = self._entries[scope.key]
            entry.held -= hold.amount
            entry.used += used
        self._news.set()

    async def settled(self, seconds: float) -> None:
        """See `Ledger.settled`."""
        await self._clock.wait(self._news, seconds)


class NoUsageHistory:
    """`History` without storage: every budget starts unused."""

    async def used(self, _scope: BudgetScope) -> BudgetAmount:
        """See `History.used`."""
        return BudgetAmount()


_MIN_ANSWER_TOKENS = 256
"""A remaining budget shortens the answer to no fewer tokens than this, unless the request wants fewer."""


@dataclass(frozen=True, slots=True)
class BudgetHold:
    """Budget reserved for a call.

    Attributes:
        demand: the estimated usage; the answer may be shorter than requested.
        hold: the hold in the ledger; None if the call counts towards no shared budget.
        answer_is_capped: whether the budgets hold only with that shortened answer.
    """

    demand: CallUsage
    hold: LedgerHold | None
    answer_is_capped: bool


class BudgetManager:
    """All budgets of a process.

    Args:
        daily: the budget of all requests of a day (UTC) together.
        ledger: tracks the budgets that requests share.
        history: source of earlier usage.
        clock: source of the time.
    """

    def __init__(
        self, daily: DailyBudget | None, ledger: BudgetLedger, history: UsageHistory, clock: Clock
    ) -> None:
        self._daily: Budget | None = None
        if daily is not None:
            self._daily = Budget(daily.max_calls, daily.max_tokens, daily.max_pico_dollars)
        self._ledger = ledger
        self._history = history
        self._clock = clock

    def purse(self, request: GenerateRequest) -> BudgetSession:
        """Return the budgets of a request, for all its calls."""
        return BudgetSession(self, request)

    def shared(self, request: GenerateRequest) -> tuple[BudgetScope, ...]:
        """Return the shared budgets that a call of the request counts towards now."""
        scopes = []
        if request.conversation_id and request.conversation_budget:
            scopes.append(
                BudgetScope(BudgetKind.CONVERSATION, request.conversation_id, request.conversation_budget)
            )
        if self._daily is not None:
            scopes.append(BudgetScope(BudgetKind.DAY, self._clock.today().date().isoformat(), self._daily))
        return tuple(scopes)

    async def reserve(
        self, scopes: tuple[BudgetScope, ...], call: ProviderCall, demand: CallUsage
    ) -> tuple[CallUsage, LedgerHold]:
        """Reserve the estimated usage of a call, or as much as is left.

        Raises the errors of `Purse.reserve`.
        """
        least = _min_answer_tokens(demand)
        while True:
            answer = await self._ledger.reserve(scopes, _to_amount(demand))
            if isinstance(answer, LedgerHold):
                return demand, answer
            if None in answer.used:
                await self._open(scopes, answer)
                continue
            fitting = demand
            for scope, used in zip(scopes, answer.used, strict=True):
                fitting = self.fitted(scope, used or BudgetAmount(), call, fitting, least)
            if fitting == demand:
                # The rest is reserved by calls in flight; most of them return a part of it.
                left = self._clock.left()
                if left <= 0:
                    scope, used = scopes[answer.short], answer.used[answer.short] or BudgetAmount()
                    raise budget_exhausted_error(
                        scope, find_exhausted(scope.caps, used, _to_amount(demand)), self._clock.today()
                    )
                await self._ledger.settled(left)
            demand = fitting

    def fitted(
        self, scope: BudgetScope, used: BudgetAmount, call: ProviderCall, demand: CallUsage, least: int
    ) -> CallUsage:
        """Return the usage that fits into the rest of a budget, with a shorter answer if necessary.

        Args:
            scope: the budget.
            used: its settled usage, without open reservations.
            call: the call.
            demand: the estimated usage of the call.
            least: the shortest useful answer, in tokens.
        """
        now = self._clock.today()
        caps, prompt = scope.caps, demand.input_tokens
        if (used + _to_amount(demand)).fits(caps):
            return demand
        most = demand.output_tokens
        if caps.max_tokens is not None:
            most = min(most, caps.max_tokens - used.tokens - prompt)
        if caps.max_cost is not None:
            most = min(most, max_affordable_output(call, prompt, most, caps.max_cost - used.cost, now))
        tokens = max(most, least)
        shorter = replace(demand, output_tokens=tokens, cost=max_cost(prompt, tokens, call.data, now))
        if not (used + _to_amount(shorter)).fits(caps):
            raise budget_exhausted_error(scope, find_exhausted(caps, used, _to_amount(shorter)), now)
        return shorter

    async def settle(self, hold: LedgerHold, used: BudgetAmount) -> None:
        """Settle the hold of a finished call; see `Ledger.settle`."""
        await self._ledger.settle(hold, used)

    async def _open(self, scopes: Iterable[BudgetScope], refused: ReservationRejected) -> None:
        for scope, used in zip(scopes, refused.used, strict=True):
            if used is None:
                await self._ledger.open(scope, await self._history.used(scope))


class BudgetSession:
    """Budgets of one request; its calls run one after another.

    Attributes:
        calls: number of calls so far.
    """

    def __init__(self, budgets: BudgetManager, request: GenerateRequest) -> None:
        self._budgets = budgets
        self._request = request
        self._own = BudgetScope(BudgetKind.REQUEST, "", request.budget or Budget())
        self._used = BudgetAmount()
        self.calls = 0

    async def reserve(self, call: ProviderCall, demand: CallUsage) -> BudgetHold:
        """Reserve the estimated usage of a call in every budget that it counts towards.

        Other calls return a part of their reservation when they end. A call that would fit without those
        reservations waits for them.

        Args:
            call: the call.
            demand: its estimated usage.

        Raises:
            ResourceExhaustedError: a budget has no room, not even for a shorter answer (code
                BUDGET_EXHAUSTED).
            FailedPreconditionError: the cost is capped, and the price of the call is unknown (code
                PRICE_UNKNOWN).
            UnavailableError: the usage of a budget cannot be read now.
        """
        shared = self._budgets.shared(self._request)
        for scope in (self._own, *shared):
            if scope.caps.max_cost is not None and demand.cost is None:
                model = f"{call.data.provider}/{call.model}"
                raise unknown_price_error(model, f"the budget of the {scope.kind.value}")
        demand = self._budgets.fitted(self._own, self._used, call, demand, _min_answer_tokens(demand))
        hold = None
        if shared:
            demand, hold = await self._budgets.reserve(shared, call, demand)
        capped = any(_limits_answers(scope.caps) for scope in (self._own, *shared))
        return BudgetHold(demand, hold, capped)

    async def settle(self, held: BudgetHold, used: CallUsage | None) -> None:
        """Settle a finished call.

        Args:
            held: its reservation.
            used: its usage; None if no request was sent.
        """
        amount = BudgetAmount() if used is None else _to_amount(used)
        self._used += amount
        if held.hold is not None:
            await self._budgets.settle(held.hold, amount)


def _to_amount(demand: CallUsage) -> BudgetAmount:
    return BudgetAmount(1, demand.input_tokens + demand.output_tokens, demand.cost or 0)


def _min_answer_tokens(demand: CallUsage) -> int:
    return min(demand.output_tokens, _MIN_ANSWER_TOKENS)


def _limits_answers(caps: Budget) -> bool:
    return caps.max_tokens is not None or caps.max_cost is not None
