"""Budgets of a request, a conversation and a day: enforced before each call, over all calls."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import closing
from peripety.core.config import Config, DailyBudget, ProviderLimits
from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.budgets.budget_session import BudgetManager, MemoryBudgetLedger, NoUsageHistory
from peripety.gateway.budgets.types import BudgetAmount, BudgetScope
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import collect_completion
from support.gateway.fake_gateway import ANSWER, WORDS, FakeProvider, ScriptedPart, used
from support.gateway.requests import asking, call_of
from support.servers.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from peripety.core.call_context import Clock
    from peripety.gateway.types.response import Completion


DOWN = UnavailableError("x", code="PROVIDER_FAILED")
CUT = UnavailableError("x", code="STREAM_TRUNCATED")
REFUSED = InvalidArgumentError("x", code="PROVIDER_REFUSED_REQUEST")
PROMPT = 18
"""The tokens that are set aside for the prompt of `asking()`: $4 a million, $8 to write it to the cache."""
TOKEN = 20 * 10**6
"""The price of a token of the answer, in pico-dollars."""
MOST_FOR_PROMPT = PROMPT * 8 * 10**6


class Setting:
    """A caller with budgets, in front of one provider."""

    def __init__(self, clock: Clock, *scripts: tuple[ScriptedPart, ...], **config: Any) -> None:
        self.clock = clock
        self.provider = FakeProvider(*(scripts or (ANSWER,)))
        self.caller = CallExecutor(Config(**config), clock, Random(7))

    async def ask(
        self,
        model: str = "claude-opus-5-5",
        provider: str = "anthropic",
        **options: Any,
    ) -> Completion:
        request = asking(**({"max_output_tokens": 1000} | options))
        return await collect_completion(self.caller.stream(self.provider, call_of(request, model, provider)))

    async def outcome(self, **options: Any) -> str:
        try:
            return (await self.ask(**options)).text
        except PeripetyError as error:
            return error.code

    @property
    def lengths(self) -> list[int | None]:
        """The most tokens that each answer was allowed."""
        return [call.request.max_output_tokens for call in self.provider.calls]


async def refusal(setting: Setting, **options: Any) -> PeripetyError:
    with pytest.raises(PeripetyError) as caught:
        await setting.ask(**options)
    return caught.value


def test_the_calls_of_a_request_end_with_its_budget_and_the_caller_learns_what_failed() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, (DOWN,), (DOWN,), ANSWER)
        assert await setting.outcome(budget=Budget(max_calls=2)) == "PROVIDER_FAILED"
        assert setting.provider.requests == 2

    in_virtual_time(scene)


def test_a_budget_spans_the_calls_that_go_by_one_purse() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, used(PROMPT, 400))
        request = asking(max_output_tokens=1000, budget=Budget(max_tokens=1300))
        call = call_of(request, "claude-opus-5-5", "anthropic")
        purse = setting.caller.open_budgets(request)
        for _ in range(3):
            await collect_completion(setting.caller.stream(setting.provider, call, purse))
        with pytest.raises(ResourceExhaustedError, match="1254 of 1300 tokens") as caught:
            await collect_completion(setting.caller.stream(setting.provider, call, purse))
        assert caught.value.details == {
            "budget": "request",
            "cap": "max_tokens",
            "limit": "1300",
            "used": "1254",
        }
        assert setting.lengths == [1000, 1300 - 418 - PROMPT, 1300 - 836 - PROMPT]
        assert purse.calls == 3

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("budget", "asked", "length"),
    [
        (Budget(max_tokens=PROMPT + 5000), None, 5000),
        (Budget(max_tokens=PROMPT + 256), None, 256),
        (Budget(max_tokens=PROMPT + 10), 10, 10),
        (Budget(max_tokens=10**6), None, 32_000),
        (Budget(max_cost=MOST_FOR_PROMPT + 300 * TOKEN), None, 300),
        (Budget(max_cost=MOST_FOR_PROMPT + 300 * TOKEN + TOKEN - 1), 1000, 300),
        (Budget(max_cost=MOST_FOR_PROMPT + 999 * TOKEN, max_tokens=PROMPT + 500), None, 500),
        (Budget(max_calls=1), None, None),
        (None, None, None),
    ],
)
def test_an_answer_is_no_longer_than_the_budget_allows(
    budget: Budget | None,
    asked: int | None,
    length: int | None,
) -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock)
        await setting.ask(budget=budget, max_output_tokens=asked)
        assert setting.lengths == [length]

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("budget", "asked"),
    [
        (Budget(max_tokens=PROMPT + 255), None),
        (Budget(max_tokens=PROMPT + 9), 10),
        (Budget(max_tokens=1), None),
        (Budget(max_cost=MOST_FOR_PROMPT + 256 * TOKEN - 1), None),
        (Budget(max_cost=1), 1),
    ],
)
def test_a_budget_without_room_for_a_useful_answer_refuses_the_call(
    budget: Budget,
    asked: int | None,
) -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock)
        error = await refusal(setting, budget=budget, max_output_tokens=asked)
        assert (error.code, error.details["budget"]) == ("BUDGET_EXHAUSTED", "request")
        assert setting.provider.requests == 0

    in_virtual_time(scene)


def test_money_is_told_in_dollars_with_the_way_out() -> None:
    async def scene(clock: Clock) -> None:
        error = await refusal(Setting(clock), budget=Budget(max_cost=10**9))
        assert error.message == (
            "budget of the request exhausted: 0 of 0.001 dollars used, and the next call may need"
            " 0.005264; raise its budget.max_cost, shorten the prompt, or request a shorter answer"
        )

    in_virtual_time(scene)


@pytest.mark.parametrize("whose", ["request", "conversation", "day"])
def test_a_price_that_is_not_known_is_never_taken_for_nothing(whose: str) -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, daily_budget={"max_cost_dollars": 1} if whose == "day" else None)
        budget = Budget(max_cost=10**12)
        options: dict[str, dict[str, Any]] = {
            "request": {"budget": budget},
            "conversation": {"conversation_id": "c", "conversation_budget": budget},
            "day": {},
        }
        error = await refusal(setting, model="unheard-of", provider="generic", **options[whose])
        assert isinstance(error, FailedPreconditionError)
        assert error.code == "PRICE_UNKNOWN"
        assert "generic/unheard-of" in error.message
        assert f"the budget of the {whose}" in error.message
        assert "PERIPETY_MODELS" in error.message

    in_virtual_time(scene)


def test_a_conversation_has_one_budget_over_all_of_its_requests() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, used(PROMPT, 482))
        mine: dict[str, Any] = {"conversation_id": "a", "conversation_budget": Budget(max_tokens=1200)}
        assert await setting.outcome(**mine) == "ab"
        assert await setting.outcome(**mine) == "ab"
        error = await refusal(setting, **mine)
        assert (error.code, error.details["budget"]) == ("BUDGET_EXHAUSTED", "conversation")
        assert await setting.outcome(**mine | {"conversation_id": "b"}) == "ab"
        assert await setting.outcome() == "ab"

    in_virtual_time(scene)


def test_a_day_has_one_budget_and_the_next_day_another() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, used(PROMPT, 982), daily_budget={"max_tokens": 2200})
        assert [await setting.outcome() for _ in range(3)] == ["ab", "ab", "BUDGET_EXHAUSTED"]
        error = await refusal(setting)
        assert "PERIPETY_DAILY_BUDGET" in error.message
        assert error.retry_after == 12 * 3600
        await clock.sleep(12 * 3600)
        assert await setting.outcome() == "ab"

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("script", "left"),
    [
        (used(PROMPT, 100), 2000 - PROMPT - 100),
        ((REFUSED,), 2000),
        ((CUT,), 2000 - PROMPT - 1000),  # the model may have written it, even if the caller did not read it
        ((*WORDS, CUT), 2000 - PROMPT - 1000),
        ((*WORDS, REFUSED), 2000 - PROMPT - 1000),
        (used(0, 0), 2000 - PROMPT - 1000),
    ],
    ids=["reported", "refused", "cut before the first token", "cut", "ended by an error", "not reported"],
)
def test_a_call_counts_for_what_it_used_or_may_have_used(script: tuple[ScriptedPart, ...], left: int) -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(
            clock,
            script,
            used(PROMPT, 1),
            daily_budget={"max_tokens": 2000},
            breaker_failures=1,
        )
        await setting.outcome()
        await clock.sleep(60)
        await setting.ask(max_output_tokens=5000)
        assert setting.lengths[-1] == left - PROMPT

    in_virtual_time(scene)


def test_who_leaves_gives_nothing_back_of_a_call_that_was_made() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, (*WORDS, 1e6), used(PROMPT, 1), daily_budget={"max_tokens": 2000})
        request = asking(max_output_tokens=1000)
        call = call_of(request, "claude-opus-5-5", "anthropic")
        async with closing(setting.caller.stream(setting.provider, call)) as events:
            await anext(events)
        await setting.ask(max_output_tokens=5000)
        assert setting.lengths[-1] == 2000 - PROMPT - 1000 - PROMPT

    in_virtual_time(scene)


def test_who_leaves_before_the_call_gives_everything_back() -> None:
    async def scene(clock: Clock) -> None:
        limits = {"generic": ProviderLimits(requests_per_minute=1)}
        setting = Setting(clock, used(PROMPT, 1), limits=limits, daily_budget={"max_tokens": 2000})
        await setting.ask(max_output_tokens=1)
        waiting = asyncio.create_task(setting.ask())
        await clock.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        await setting.ask(max_output_tokens=5000)
        assert setting.lengths == [1, 2000 - 2 * PROMPT - 1]

    in_virtual_time(scene)


def test_a_call_waits_for_what_others_have_set_aside_and_will_not_use() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, (5.0, *used(PROMPT, 100)), daily_budget={"max_tokens": 2000})
        assert await asyncio.gather(*[setting.outcome() for _ in range(4)]) == ["ab"] * 4
        assert setting.lengths == [1000] * 4
        assert clock.now() == 20

    in_virtual_time(scene)


def test_nobody_waits_past_the_deadline_for_what_others_have_set_aside() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, (50.0, *ANSWER), daily_budget={"max_tokens": 2000})
        first = asyncio.create_task(setting.ask())
        await asyncio.sleep(0)
        error = await refusal(setting)
        assert (error.code, clock.now()) == ("BUDGET_EXHAUSTED", 30)
        assert "calls in progress" in error.message
        await first

    in_virtual_time(scene, patience=30)


def test_what_was_used_before_counts() -> None:
    class Remembered(NoUsageHistory):
        async def get_usage(self, scope: BudgetScope) -> BudgetAmount:
            return {"day:2026-11-18": BudgetAmount(tokens=1500)}.get(scope.key, BudgetAmount())

    async def scene(clock: Clock) -> None:
        config = Config(daily_budget=DailyBudget(max_tokens=2000))
        setting = Setting(clock)
        budgets = BudgetManager(config.daily_budget, MemoryBudgetLedger(clock), Remembered(), clock)
        setting.caller = CallExecutor(config, clock, Random(7), budgets=budgets)
        await setting.ask()
        assert setting.lengths == [500 - PROMPT]

    in_virtual_time(scene)


def test_a_ledger_forgets_what_nobody_uses_and_reads_it_again() -> None:
    class Counting(NoUsageHistory):
        asked = 0

        async def get_usage(self, scope: BudgetScope) -> BudgetAmount:
            self.asked += scope.name == "0"
            return BudgetAmount()

    async def scene(clock: Clock) -> None:
        history = Counting()
        setting = Setting(clock)
        budgets = BudgetManager(None, MemoryBudgetLedger(clock), history, clock)
        setting.caller = CallExecutor(Config(), clock, Random(7), budgets=budgets)
        for name in [*range(1000), 0, *range(1000, 2100), 0]:
            await setting.ask(conversation_id=str(name), conversation_budget=Budget(max_tokens=2000))
        assert history.asked == 2

    in_virtual_time(scene)


def test_limits_on_money_and_budgets_hold_together() -> None:
    async def scene(clock: Clock) -> None:
        limits = {"generic": {"dollars_per_minute": Decimal("0.01")}}
        setting = Setting(clock, used(PROMPT, 400), limits=limits, daily_budget={"max_cost_dollars": 5})
        for _ in range(3):
            await setting.ask(max_output_tokens=400)  # 0.008 dollars each
        assert 120 <= clock.now() <= 121

    in_virtual_time(scene)
