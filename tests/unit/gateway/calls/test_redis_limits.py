"""Limits and budgets that replicas share: two processes' worth of clients on one real Redis server."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from peripety.core.call_context import Clock
from peripety.core.config import ProviderLimits
from peripety.core.redis_server import RedisServer
from peripety.errors import ResourceExhaustedError, UnavailableError
from peripety.gateway.budgets.budget_session import BudgetManager, NoUsageHistory
from peripety.gateway.budgets.types import (
    BudgetAmount,
    BudgetKind,
    BudgetScope,
    LedgerHold,
    ReservationRejected,
)
from peripety.gateway.calls.rate_limiter import CallUsage, LimitReservation, LimitUsage, RateLimiter
from peripety.gateway.calls.redis_limits import LeaseManager, RedisBudgetLedger, RedisUsageCounters
from peripety.gateway.types.request import Budget
from support.gateway.requests import asking, call_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


SMALL = CallUsage(10, 10, 10)
SLOT = 0.5  # a reservation counts for a minute, rounded up to a slot of this many seconds
DAY = BudgetScope(BudgetKind.DAY, "2026-11-18", Budget(max_cost=1000))
CALL = call_of(asking(), "claude-opus-5-5", "anthropic")


@asynccontextmanager
async def replica(url: str, seconds: float = 30.0) -> AsyncIterator[LeaseManager]:
    server = RedisServer(url)
    leases = LeaseManager(server, seconds)
    try:
        yield leases
    finally:
        await leases.aclose()
        await server.close()


@asynccontextmanager
async def replicas(url: str, number: int = 2) -> AsyncIterator[list[LeaseManager]]:
    async with replica(url) as one, replica(url) as other:
        yield [one, other][:number]


async def reserved(
    counters: RedisUsageCounters,
    limits: ProviderLimits,
    demand: CallUsage = SMALL,
) -> LimitReservation:
    reservation = await counters.reserve("a", limits, demand)
    assert isinstance(reservation, LimitReservation)
    return reservation


@pytest.mark.parametrize(
    ("limits", "fit"),
    [
        ({"requests_per_minute": 7}, 7),
        ({"input_tokens_per_minute": 75}, 7),
        ({"output_tokens_per_minute": 75}, 7),
        ({"pico_dollars_per_minute": 75}, 7),
        ({"concurrency": 7}, 7),
    ],
)
async def test_replicas_together_let_in_no_more_than_a_limit(
    redis_url: str,
    limits: dict[str, int],
    fit: int,
) -> None:
    allowed = ProviderLimits.model_construct(None, **limits)
    async with replicas(redis_url) as both:
        counters = [RedisUsageCounters(leases) for leases in both]
        answers = await asyncio.gather(*[counters[n % 2].reserve("a", allowed, SMALL) for n in range(40)])
        held = [answer for answer in answers if isinstance(answer, LimitReservation)]
        waits = [answer for answer in answers if not isinstance(answer, LimitReservation)]
        assert len(held) == fit
        assert all(0 < wait <= 60 + SLOT for wait in waits)
        assert isinstance(await counters[0].reserve("b", allowed, SMALL), LimitReservation)


async def test_what_is_given_back_is_there_for_all_and_what_was_used_is_not(redis_url: str) -> None:
    allowed = ProviderLimits(input_tokens_per_minute=100, output_tokens_per_minute=100, concurrency=1)
    async with replicas(redis_url) as both:
        one, other = [RedisUsageCounters(leases) for leases in both]
        large = CallUsage(90, 90)
        first = await reserved(one, allowed, large)
        assert await other.reserve("a", allowed, SMALL) == 0.25
        await one.settle(first, CallUsage(10, 10))
        second = await reserved(other, allowed, large)
        await other.settle(second, None)
        begun = time.monotonic()
        third = await reserved(one, allowed, large)
        await one.settle(third, large)
        wait = await other.reserve("a", allowed, CallUsage(1, 1))
        assert isinstance(wait, float)
        assert 60 - (time.monotonic() - begun) <= wait <= 60 + SLOT


async def test_without_limits_nobody_is_asked() -> None:
    async with replica("redis://127.0.0.1:9/0") as leases:
        counters = RedisUsageCounters(leases)
        await counters.settle(await reserved(counters, ProviderLimits()), SMALL)


async def test_a_replica_that_dies_holds_nothing_for_ever_and_counts_for_all_that_it_held(
    redis_url: str,
) -> None:
    allowed = ProviderLimits(concurrency=1, output_tokens_per_minute=15)
    async with replica(redis_url, 0.03) as dead:
        await reserved(RedisUsageCounters(dead), allowed)
        ledger = RedisBudgetLedger(dead)
        await ledger.open(DAY, BudgetAmount())
        assert isinstance(await ledger.reserve([DAY], BudgetAmount(1, 10, 700)), LedgerHold)
    await asyncio.sleep(0.04)
    async with replica(redis_url) as alive:
        counters = RedisUsageCounters(alive)
        assert isinstance(await counters.reserve("a", allowed, CallUsage(1, 5)), LimitReservation)
        refused = await RedisBudgetLedger(alive).reserve([DAY], BudgetAmount(1, 10, 400))
        assert refused == ReservationRejected((BudgetAmount(1, 10, 700),), 0)


async def test_a_replica_that_lives_keeps_what_it_holds(redis_url: str) -> None:
    async with replica(redis_url, 0.06) as leases:
        counters, ledger = RedisUsageCounters(leases), RedisBudgetLedger(leases)
        allowed = ProviderLimits(concurrency=1)
        first = await reserved(counters, allowed)
        await ledger.open(DAY, BudgetAmount())
        hold = await ledger.reserve([DAY], BudgetAmount(1, 10, 700))
        assert isinstance(hold, LedgerHold)
        for _ in range(4):
            await asyncio.sleep(0.04)
        assert not isinstance(await counters.reserve("a", allowed, SMALL), LimitReservation)
        await counters.settle(first, SMALL)
        await ledger.settle(hold, BudgetAmount(1, 10, 100))
        assert isinstance(await counters.reserve("a", allowed, SMALL), LimitReservation)
        assert isinstance(await ledger.reserve([DAY], BudgetAmount(1, 10, 900)), LedgerHold)


async def test_a_replica_ends_while_it_renews_what_it_holds(redis_url: str) -> None:
    for _ in range(10):
        async with asyncio.timeout(5), replica(redis_url, 0.002) as leases:
            await RedisUsageCounters(leases).reserve("a", ProviderLimits(concurrency=100), SMALL)
            await asyncio.sleep(0.002)


async def test_a_call_that_nobody_waits_for_is_given_back(redis_url: str) -> None:
    async with replica(redis_url) as leases:
        counters, allowed = RedisUsageCounters(leases), ProviderLimits(requests_per_minute=1, concurrency=1)
        task = asyncio.create_task(counters.reserve("a", allowed, SMALL))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await leases.aclose()
        assert isinstance(await counters.reserve("a", allowed, SMALL), LimitReservation)


async def test_a_server_that_cannot_be_used_lets_nothing_in_and_costs_no_answer(redis_url: str) -> None:
    async with replica("redis://127.0.0.1:9/0") as nowhere, replica(redis_url) as leases:
        allowed = ProviderLimits(requests_per_minute=1)
        with pytest.raises(UnavailableError):
            await RedisUsageCounters(nowhere).reserve("a", allowed, SMALL)
        with pytest.raises(UnavailableError):
            await RedisBudgetLedger(nowhere).reserve([DAY], BudgetAmount())
        reservation = await reserved(RedisUsageCounters(leases), allowed)
        await RedisUsageCounters(nowhere).settle(reservation, SMALL)


async def test_a_budget_is_opened_once_and_all_or_none_are_reserved(redis_url: str) -> None:
    mine = BudgetScope(BudgetKind.CONVERSATION, "c", Budget(max_tokens=100, max_calls=2))
    async with replicas(redis_url) as both:
        one, other = [RedisBudgetLedger(leases) for leases in both]
        assert await one.reserve([mine, DAY], BudgetAmount(1, 1, 1)) == ReservationRejected((None, None), 0)
        await one.open(DAY, BudgetAmount(3, 300, 990))
        await other.open(DAY, BudgetAmount())
        assert await one.reserve([mine, DAY], BudgetAmount(1, 1, 1)) == ReservationRejected(
            (None, BudgetAmount(3, 300, 990)),
            0,
        )
        await other.open(mine, BudgetAmount())
        assert await one.reserve([mine, DAY], BudgetAmount(1, 1, 11)) == ReservationRejected(
            (BudgetAmount(), BudgetAmount(3, 300, 990)),
            1,
        )
        hold = await other.reserve([mine, DAY], BudgetAmount(1, 100, 10))
        assert isinstance(hold, LedgerHold)
        assert await one.reserve([mine], BudgetAmount(1, 1, 0)) == ReservationRejected((BudgetAmount(),), 0)
        await other.settle(hold, BudgetAmount(1, 2**40, 2**60))
        assert await one.reserve([DAY], BudgetAmount(1, 1, 1)) == ReservationRejected(
            (BudgetAmount(4, 300 + 2**40, 990 + 2**60),),
            0,
        )


@pytest.mark.parametrize("dropped", ["", ":leases", ":holds"])
async def test_what_the_server_drops_of_a_budget_leaves_no_trace_of_it(redis_url: str, dropped: str) -> None:
    async with replica(redis_url) as leases:
        ledger = RedisBudgetLedger(leases)
        await ledger.open(DAY, BudgetAmount())
        hold = await ledger.reserve([DAY], BudgetAmount(1, 10, 700))
        assert isinstance(hold, LedgerHold)
        with Redis.from_url(redis_url) as client:
            client.delete(f"peripety:budget:{DAY.key}{dropped}")
        await ledger.settle(hold, BudgetAmount(1, 10, 700))
        await ledger.open(DAY, BudgetAmount(1, 10, 700))
        assert isinstance(await ledger.reserve([DAY], BudgetAmount(1, 1, 300)), LedgerHold)
        assert isinstance(await ledger.reserve([DAY], BudgetAmount(1, 1, 301)), ReservationRejected)


async def test_budgets_of_replicas_are_used_up_and_never_overspent(redis_url: str) -> None:
    random = Random(3)
    cap = Budget(max_tokens=60_000, max_cost=10**12)
    spent = most = 0

    async with replicas(redis_url) as both:
        clock = Clock(deadline=lambda: None)
        ledgers = [RedisBudgetLedger(leases) for leases in both]

        async def spend(ledger: RedisBudgetLedger) -> None:
            nonlocal spent, most
            request = asking(conversation_id="c", conversation_budget=cap)
            purse = BudgetManager(None, ledger, NoUsageHistory(), clock).open(request)
            while True:
                held = await purse.reserve(CALL, CallUsage(100, 900, 1))
                most += 1
                await asyncio.sleep(random.uniform(0, 0.002))
                used = CallUsage(random.randint(0, 100), random.randint(0, held.estimate.output_tokens))
                spent += used.input_tokens + used.output_tokens
                await purse.settle(held, used)

        ends = await asyncio.gather(*[spend(ledgers[n % 2]) for n in range(16)], return_exceptions=True)
    assert all(isinstance(end, ResourceExhaustedError) for end in ends), ends
    assert 0.95 * 60_000 <= spent <= 60_000
    assert most > 60_000 / 1000


async def test_the_gates_of_replicas_share_a_limit(redis_url: str) -> None:
    under_way = most = 0
    # A call ends when two others are under way, too.
    three = asyncio.Barrier(3)

    async with replicas(redis_url) as both:
        limits: dict[str, Any] = {"concurrency": 3}
        gates = [
            RateLimiter(
                "a",
                ProviderLimits(**limits),
                RedisUsageCounters(leases),
                Clock(deadline=lambda: None),
            )
            for leases in both
        ]

        async def call(gate: RateLimiter) -> None:
            nonlocal under_way, most
            reservation = await gate.acquire(SMALL)
            under_way += 1
            most = max(most, under_way)
            await three.wait()
            under_way -= 1
            await gate.release(reservation, SMALL)

        async with asyncio.timeout(60):
            await asyncio.gather(*[call(gates[n % 2]) for n in range(30)])
    assert most == 3


async def test_every_replica_reads_the_use_of_all(redis_url: str) -> None:
    allowed = ProviderLimits(input_tokens_per_minute=100)
    async with replicas(redis_url) as both:
        one, other = [RedisUsageCounters(leases) for leases in both]
        assert await one.read("a") == LimitUsage()
        running = await reserved(one, allowed, CallUsage(10, 20, 30))
        await other.settle(await reserved(other, allowed), CallUsage(1, 2, 3))
        assert await other.read("a") == LimitUsage(2, 11, 22, 33, 1)
        await one.settle(running, None)
        assert await one.read("a") == LimitUsage(1, 1, 2, 3, 0)
