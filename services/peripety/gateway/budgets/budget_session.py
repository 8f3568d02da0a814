"""Budgets of one request: reserve before a call, settle after it.

A call counts towards the budget of its request, and towards the budgets that requests share: of its
conversation, and of the day. The calls of one request run one after another, so its own budget is a sum.
Shared budgets are in a ledger, where concurrent calls reserve before they are sent.

Invariants:

- Usage plus open reservations stay within every cap. A reservation is the highest usage that the call can
  have, so caps hold for concurrent calls as well.
- A reservation covers all shared budgets of a call, or none.
- A budget whose usage is unknown to the ledger is opened with the usage of the history, so a restart does
  not reset it. The ledger in memory drops only budgets without open reservations.
- If too little is left for the whole answer, the answer becomes shorter, but not shorter than a useful
  minimum. Only then is the call rejected.
- A call that would fit without the reservations of others waits for them, because most calls return a part.
  The deadline of the caller bounds the wait.
- If a budget caps the cost, a model without a known price is rejected: its cost cannot be bounded.
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
from peripety.gateway.models.call_cost import max_cost, unknown_price_error
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
    reserved: BudgetAmount


class MemoryBudgetLedger:
    """`BudgetLedger` in memory.

    Budgets that are idle for long are dropped; their usage is then read from the history again.

    Args:
        clock: used to wait.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, _LedgerEntry] = OrderedDict()
        self._hold_ids = count()
        self._released = asyncio.Event()

    async def open(self, scope: BudgetScope, used: BudgetAmount) -> None:
        """See `BudgetLedger.open`."""
        self._entries.setdefault(scope.key, _LedgerEntry(used, BudgetAmount()))
        if len(self._entries) > _MAX_ENTRIES:
            key, oldest = self._entries.popitem(last=False)
            if oldest.reserved != BudgetAmount():
                self._entries[key] = oldest

    async def reserve(
        self,
        scopes: Sequence[BudgetScope],
        amount: BudgetAmount,
    ) -> LedgerHold | ReservationRejected:
        """See `BudgetLedger.reserve`."""
        entries = [self._entries.get(scope.key) for scope in scopes]
        for index, (scope, entry) in enumerate(zip(scopes, entries, strict=True)):
            if entry is None or not (entry.used + entry.reserved + amount).is_within(scope.caps):
                self._released.clear()
                return ReservationRejected(
                    tuple(None if entry is None else entry.used for entry in entries),
                    index,
                )
        for scope in scopes:
            self._entries[scope.key].reserved += amount
            self._entries.move_to_end(scope.key)
        return LedgerHold(str(next(self._hold_ids)), tuple(scopes), amount)

    async def settle(self, hold: LedgerHold, used: BudgetAmount) -> None:
        """See `BudgetLedger.settle`."""
        for scope in hold.scopes:
            entry = self._entries[scope.key]
            entry.reserved -= hold.amount
            entry.used += used
        self._released.set()

    async def wait_for_release(self, seconds: float) -> None:
        """See `BudgetLedger.wait_for_release`."""
        await self._clock.wait(self._released, seconds)


class NoUsageHistory:
    """`UsageHistory` without storage: every budget starts unused."""

    async def get_usage(self, _scope: BudgetScope) -> BudgetAmount:
        """See `UsageHistory.get_usage`."""
        return BudgetAmount()


_MIN_ANSWER_TOKENS = 256
"""A remaining budget shortens the answer to no fewer tokens than this, unless the request wants fewer."""


@dataclass(frozen=True, slots=True)
class BudgetHold:
    """Budget reserved for a call.

    Attributes:
        estimate: the estimated usage; the answer may be shorter than requested.
        hold: the hold in the ledger; None if the call counts towards no shared budget.
        is_answer_capped: whether the budgets hold only with that shortened answer.
    """

    estimate: CallUsage
    hold: LedgerHold | None
    is_answer_capped: bool


class BudgetManager:
    """All budgets of a process.

    Args:
        daily: the budget of all requests of a day (UTC) together.
        ledger: tracks the budgets that requests share.
        history: source of earlier usage.
        clock: source of the time.
    """

    def __init__(
        self,
        daily: DailyBudget | None,
        ledger: BudgetLedger,
        history: UsageHistory,
        clock: Clock,
    ) -> None:
        self._daily: Budget | None = None
        if daily is not None:
            self._daily = Budget(daily.max_calls, daily.max_tokens, daily.max_pico_dollars)
        self._ledger = ledger
        self._history = history
        self._clock = clock

    def open(self, request: GenerateRequest) -> BudgetSession:
        """Return the budgets of a request, for all its calls."""
        return BudgetSession(self, request)

    def shared_scopes(self, request: GenerateRequest) -> tuple[BudgetScope, ...]:
        """Return the shared budgets that a call of the request counts towards now."""
        scopes = []
        if request.conversation_id and request.conversation_budget:
            scopes.append(
                BudgetScope(BudgetKind.CONVERSATION, request.conversation_id, request.conversation_budget),
            )
        if self._daily is not None:
            scopes.append(BudgetScope(BudgetKind.DAY, self._clock.today().date().isoformat(), self._daily))
        return tuple(scopes)

    async def reserve(
        self,
        scopes: tuple[BudgetScope, ...],
        call: ProviderCall,
        estimate: CallUsage,
    ) -> tuple[CallUsage, LedgerHold]:
        """Reserve the estimated usage of a call, or as much as is left.

        Raises the errors of `BudgetSession.reserve`.
        """
        least = _min_answer_tokens(estimate)
        while True:
            answer = await self._ledger.reserve(scopes, _to_amount(estimate))
            if isinstance(answer, LedgerHold):
                return estimate, answer
            if None in answer.used:
                await self._open_scopes(scopes, answer)
                continue
            fitting = estimate
            for scope, used in zip(scopes, answer.used, strict=True):
                fitting = self.fit_estimate(scope, used or BudgetAmount(), call, fitting, least)
            if fitting == estimate:
                # The rest is reserved by calls in flight; most of them return a part of it.
                left = self._clock.remaining_seconds()
                if left <= 0:
                    scope, used = (
                        scopes[answer.exhausted_index],
                        answer.used[answer.exhausted_index] or BudgetAmount(),
                    )
                    raise budget_exhausted_error(
                        scope,
                        find_exhausted(scope.caps, used, _to_amount(estimate)),
                        self._clock.today(),
                    )
                await self._ledger.wait_for_release(left)
            estimate = fitting

    def fit_estimate(
        self,
        scope: BudgetScope,
        used: BudgetAmount,
        call: ProviderCall,
        estimate: CallUsage,
        min_answer_tokens: int,
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
        caps, prompt = scope.caps, estimate.input_tokens
        if (used + _to_amount(estimate)).is_within(caps):
            return estimate
        most = estimate.output_tokens
        if caps.max_tokens is not None:
            most = min(most, caps.max_tokens - used.tokens - prompt)
        if caps.max_cost is not None:
            most = min(most, max_affordable_output(call, prompt, most, caps.max_cost - used.cost, now))
        tokens = max(most, min_answer_tokens)
        shorter = replace(estimate, output_tokens=tokens, cost=max_cost(prompt, tokens, call.data, now))
        if not (used + _to_amount(shorter)).is_within(caps):
            raise budget_exhausted_error(scope, find_exhausted(caps, used, _to_amount(shorter)), now)
        return shorter

    async def settle(self, hold: LedgerHold, used: BudgetAmount) -> None:
        """Settle the hold of a finished call; see `BudgetLedger.settle`."""
        await self._ledger.settle(hold, used)

    async def _open_scopes(self, scopes: Iterable[BudgetScope], rejection: ReservationRejected) -> None:
        for scope, used in zip(scopes, rejection.used, strict=True):
            if used is None:
                await self._ledger.open(scope, await self._history.get_usage(scope))


class BudgetSession:
    """Budgets of one request; its calls run one after another.

    Attributes:
        calls: number of calls so far.
    """

    def __init__(self, budgets: BudgetManager, request: GenerateRequest) -> None:
        self._budgets = budgets
        self._request = request
        self._request_scopes = BudgetScope(BudgetKind.REQUEST, "", request.budget or Budget())
        self._used = BudgetAmount()
        self.calls = 0

    async def reserve(self, call: ProviderCall, estimate: CallUsage) -> BudgetHold:
        """Reserve the estimated usage of a call in every budget that it counts towards.

        Other calls return a part of their reservation when they end. A call that would fit without those
        reservations waits for them.

        Args:
            call: the call.
            estimate: its estimated usage.

        Raises:
            ResourceExhaustedError: a budget has no room, not even for a shorter answer (code
                BUDGET_EXHAUSTED).
            FailedPreconditionError: the cost is capped, and the price of the call is unknown (code
                PRICE_UNKNOWN).
            UnavailableError: the usage of a budget cannot be read now.
        """
        shared = self._budgets.shared_scopes(self._request)
        for scope in (self._request_scopes, *shared):
            if scope.caps.max_cost is not None and estimate.cost is None:
                model = f"{call.data.provider}/{call.model}"
                raise unknown_price_error(model, f"the budget of the {scope.kind.value}")
        estimate = self._budgets.fit_estimate(
            self._request_scopes,
            self._used,
            call,
            estimate,
            _min_answer_tokens(estimate),
        )
        hold = None
        if shared:
            estimate, hold = await self._budgets.reserve(shared, call, estimate)
        capped = any(_limits_answers(scope.caps) for scope in (self._request_scopes, *shared))
        return BudgetHold(estimate, hold, capped)

    async def settle(self, hold: BudgetHold, used: CallUsage | None) -> None:
        """Settle a finished call.

        Args:
            hold: its reservation.
            used: its usage; None if no request was sent.
        """
        amount = BudgetAmount() if used is None else _to_amount(used)
        self._used += amount
        if hold.hold is not None:
            await self._budgets.settle(hold.hold, amount)


def _to_amount(usage: CallUsage) -> BudgetAmount:
    return BudgetAmount(1, usage.input_tokens + usage.output_tokens, usage.cost or 0)


def _min_answer_tokens(estimate: CallUsage) -> int:
    return min(estimate.output_tokens, _MIN_ANSWER_TOKENS)


def _limits_answers(caps: Budget) -> bool:
    return caps.max_tokens is not None or caps.max_cost is not None
