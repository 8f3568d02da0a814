"""Budgets of one request, over all its provider calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.gateway.calling.budgets.model import Amount, BudgetKind, Hold, Refused, Scope
from peripety.gateway.calling.budgets.refusals import exhausted, shortage
from peripety.gateway.calling.demand import longest_affordable
from peripety.gateway.catalogue import most_it_can_cost, price_unknown
from peripety.gateway.model import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.config import DailyBudget
    from peripety.gateway.calling.budgets.model import History, Ledger
    from peripety.gateway.calling.clock import Clock
    from peripety.gateway.calling.counters import Demand
    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.providers.base import Call

__all__ = ["Budgets", "Held", "Purse"]

_SHORTEST_ANSWER = 256
"""A remaining budget shortens the answer to no fewer tokens than this, unless the request wants fewer."""


@dataclass(frozen=True, slots=True)
class Held:
    """Budget reserved for a call.

    Attributes:
        demand: the estimated usage; the answer may be shorter than requested.
        hold: the hold in the ledger; None if the call counts towards no shared budget.
        answer_is_capped: whether the budgets hold only with that shortened answer.
    """

    demand: Demand
    hold: Hold | None
    answer_is_capped: bool


class Budgets:
    """All budgets of a process.

    Args:
        daily: the budget of all requests of a day (UTC) together.
        ledger: tracks the budgets that requests share.
        history: source of earlier usage.
        clock: source of the time.
    """

    def __init__(self, daily: DailyBudget | None, ledger: Ledger, history: History, clock: Clock) -> None:
        self._daily: Budget | None = None
        if daily is not None:
            self._daily = Budget(daily.max_calls, daily.max_tokens, daily.max_pico_dollars)
        self._ledger = ledger
        self._history = history
        self._clock = clock

    def purse(self, request: GenerateRequest) -> Purse:
        """Return the budgets of a request, for all its calls."""
        return Purse(self, request)

    def shared(self, request: GenerateRequest) -> tuple[Scope, ...]:
        """Return the shared budgets that a call of the request counts towards now."""
        scopes = []
        if request.conversation_id and request.conversation_budget:
            scopes.append(
                Scope(BudgetKind.CONVERSATION, request.conversation_id, request.conversation_budget)
            )
        if self._daily is not None:
            scopes.append(Scope(BudgetKind.DAY, self._clock.today().date().isoformat(), self._daily))
        return tuple(scopes)

    async def reserve(self, scopes: tuple[Scope, ...], call: Call, demand: Demand) -> tuple[Demand, Hold]:
        """Reserve the estimated usage of a call, or as much as is left.

        Raises the errors of `Purse.reserve`.
        """
        least = _least(demand)
        while True:
            answer = await self._ledger.reserve(scopes, _amount(demand))
            if isinstance(answer, Hold):
                return demand, answer
            if None in answer.used:
                await self._open(scopes, answer)
                continue
            fitting = demand
            for scope, used in zip(scopes, answer.used, strict=True):
                fitting = self.fitted(scope, used or Amount(), call, fitting, least)
            if fitting == demand:
                # The rest is reserved by calls in flight; most of them return a part of it.
                left = self._clock.left()
                if left <= 0:
                    scope, used = scopes[answer.short], answer.used[answer.short] or Amount()
                    raise exhausted(scope, shortage(scope.caps, used, _amount(demand)), self._clock.today())
                await self._ledger.settled(left)
            demand = fitting

    def fitted(self, scope: Scope, used: Amount, call: Call, demand: Demand, least: int) -> Demand:
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
        if (used + _amount(demand)).fits(caps):
            return demand
        most = demand.output_tokens
        if caps.max_tokens is not None:
            most = min(most, caps.max_tokens - used.tokens - prompt)
        if caps.max_cost is not None:
            most = min(most, longest_affordable(call, prompt, most, caps.max_cost - used.cost, now))
        tokens = max(most, least)
        shorter = replace(demand, output_tokens=tokens, cost=most_it_can_cost(prompt, tokens, call.data, now))
        if not (used + _amount(shorter)).fits(caps):
            raise exhausted(scope, shortage(caps, used, _amount(shorter)), now)
        return shorter

    async def settle(self, hold: Hold, used: Amount) -> None:
        """Settle the hold of a finished call; see `Ledger.settle`."""
        await self._ledger.settle(hold, used)

    async def _open(self, scopes: Iterable[Scope], refused: Refused) -> None:
        for scope, used in zip(scopes, refused.used, strict=True):
            if used is None:
                await self._ledger.open(scope, await self._history.used(scope))


class Purse:
    """Budgets of one request; its calls run one after another.

    Attributes:
        calls: number of calls so far.
    """

    def __init__(self, budgets: Budgets, request: GenerateRequest) -> None:
        self._budgets = budgets
        self._request = request
        self._own = Scope(BudgetKind.REQUEST, "", request.budget or Budget())
        self._used = Amount()
        self.calls = 0

    async def reserve(self, call: Call, demand: Demand) -> Held:
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
                raise price_unknown(model, f"the budget of the {scope.kind.value}")
        demand = self._budgets.fitted(self._own, self._used, call, demand, _least(demand))
        hold = None
        if shared:
            demand, hold = await self._budgets.reserve(shared, call, demand)
        capped = any(_caps_answers(scope.caps) for scope in (self._own, *shared))
        return Held(demand, hold, capped)

    async def settle(self, held: Held, used: Demand | None) -> None:
        """Settle a finished call.

        Args:
            held: its reservation.
            used: its usage; None if no request was sent.
        """
        amount = Amount() if used is None else _amount(used)
        self._used += amount
        if held.hold is not None:
            await self._budgets.settle(held.hold, amount)


def _amount(demand: Demand) -> Amount:
    return Amount(1, demand.input_tokens + demand.output_tokens, demand.cost or 0)


def _least(demand: Demand) -> int:
    return min(demand.output_tokens, _SHORTEST_ANSWER)


def _caps_answers(caps: Budget) -> bool:
    return caps.max_tokens is not None or caps.max_cost is not None
