"""Random schedules of calls against budgets: never overspent, and used up before any call is refused."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety.core.config import DailyBudget, ProviderLimits
from peripety.errors import ResourceExhaustedError
from peripety.gateway.budgets.budget_session import (
    BudgetManager,
    BudgetSession,
    MemoryBudgetLedger,
    NoUsageHistory,
)
from peripety.gateway.budgets.types import BudgetAmount
from peripety.gateway.calls.rate_limiter import CallUsage, estimate_usage
from peripety.gateway.types.request import Budget
from support.examples import example_count
from support.gateway.requests import asking, call_of
from support.servers.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from peripety.core.call_context import Clock
    from peripety.gateway.types.request import GenerateRequest


SCHEDULES = example_count(150)
LONGEST = 60
MOST_OF_A_CALL = BudgetAmount(1, 30 + LONGEST, 30 * 8_000_000 + LONGEST * 20_000_000)


def share(used: BudgetAmount, budget: Budget) -> float:
    """Return the used share of a budget, of its scarcest amount."""
    pairs = (
        (used.calls, budget.max_calls),
        (used.tokens, budget.max_tokens),
        (used.cost, budget.max_cost),
    )
    return max((amount / cap for amount, cap in pairs if cap is not None), default=0.0)


class Schedule:
    """Callers of two conversations on one day, whose requests take several calls each."""

    def __init__(self, clock: Clock, seed: int) -> None:
        self.clock = clock
        self.random = Random(seed)
        self.shared = {name: self._budget() for name in ("day", "a", "b")}
        daily = self.shared["day"]
        self.budgets = BudgetManager(
            DailyBudget.model_construct(
                max_calls=daily.max_calls,
                max_tokens=daily.max_tokens,
                max_pico_dollars=daily.max_cost,
            ),
            MemoryBudgetLedger(clock),
            NoUsageHistory(),
            clock,
        )
        self.used: defaultdict[str, BudgetAmount] = defaultdict(BudgetAmount)
        self.refused: set[str] = set()

    def _budget(self) -> Budget:
        """Of some kinds, 60 to 80 times what a call may take."""
        caps = [
            int(most * self.random.uniform(60, 80)) if self.random.random() < 0.5 else None
            for most in (MOST_OF_A_CALL.calls, MOST_OF_A_CALL.tokens, MOST_OF_A_CALL.cost)
        ]
        return Budget(*caps)

    async def play(self) -> None:
        await asyncio.gather(*[self._visit(name) for name in range(40)])

    async def _visit(self, name: int) -> None:
        task = asyncio.create_task(self._requests(str(name)))
        if self.random.random() < 0.1:
            await self.clock.sleep(self.random.uniform(0, 20))
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    async def _requests(self, name: str) -> None:
        await self.clock.sleep(self.random.uniform(0, 20))
        for number in range(5):
            conversation = self.random.choice("ab")
            own = Budget(max_calls=self.random.choice([None, 3]), max_tokens=self.random.choice([None, 100]))
            request = asking(
                max_output_tokens=self.random.randint(1, LONGEST),
                budget=own,
                conversation_id=conversation,
                conversation_budget=self.shared[conversation],
            )
            try:
                await self._calls(request, ("day", conversation, f"{name}/{number}"))
            except ResourceExhaustedError as error:
                whose = error.details["budget"]
                self.refused.add(conversation if whose == "conversation" else whose)
            mine = self.used[f"{name}/{number}"]
            assert mine.is_within(own)

    async def _calls(self, request: GenerateRequest, names: tuple[str, ...]) -> None:
        purse = self.budgets.open(request)
        while self.random.random() < 0.8:
            await self._call(request, purse, names)

    async def _call(self, request: GenerateRequest, purse: BudgetSession, names: tuple[str, ...]) -> None:
        random = self.random
        call = call_of(request, "claude-opus-5-5", "anthropic")
        held = await purse.reserve(call, estimate_usage(call, ProviderLimits(), self.clock.today()))
        demand, used = held.estimate, None
        try:
            if random.random() > 0.05:
                used = demand
                await self.clock.sleep(random.choice([0.0, random.uniform(0, 5)]))
                spread = random.random()
                used = CallUsage(
                    int(demand.input_tokens * spread),
                    int(demand.output_tokens * spread),
                    int((demand.cost or 0) * spread),
                )
        finally:
            if used is not None:
                amount = BudgetAmount(1, used.input_tokens + used.output_tokens, used.cost or 0)
                for name in names:
                    self.used[name] += amount
            await purse.settle(held, used)


@pytest.mark.slow(reason="runs schedules of many requests")
def test_budgets_are_never_overspent_and_used_up_before_anybody_is_refused() -> None:
    async def scene(clock: Clock, seed: int) -> Schedule:
        schedule = Schedule(clock, seed)
        await schedule.play()
        return schedule

    refusals = 0
    for seed in range(SCHEDULES):
        schedule = in_virtual_time(lambda clock, seed=seed: scene(clock, seed))  # type: ignore[misc]
        for name, budget in schedule.shared.items():
            assert schedule.used[name].is_within(budget), f"seed {seed}"
            if name in schedule.refused:
                refusals += 1
                assert share(schedule.used[name], budget) >= 0.95, f"seed {seed}"
    assert refusals >= SCHEDULES / 2
