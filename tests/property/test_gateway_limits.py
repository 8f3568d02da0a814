"""Random schedules of calls against limits: never too much in any minute, and hardly ever too little."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety.core.config import ProviderLimits
from peripety.errors import ResourceExhaustedError
from peripety.gateway.calls.rate_limiter import CallUsage, MemoryUsageCounters, RateLimiter
from support.examples import example_count
from support.servers.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from peripety.core.call_context import Clock


SCHEDULES = example_count(150)
MINUTE = 60.0
DOLLAR = 10**12


@dataclass(frozen=True)
class Made:
    """A call that was made, and what it used."""

    begin: float
    end: float
    input_tokens: int
    output_tokens: int
    cost: int


def busiest_minute(amounts: list[tuple[float, float]]) -> float:
    """The most that falls into any minute, wherever it begins."""
    amounts = sorted(amounts)
    most = total = 0.0
    first = 0
    for moment, amount in amounts:
        total += amount
        while moment - amounts[first][0] >= MINUTE:
            total -= amounts[first][1]
            first += 1
        most = max(most, total)
    return most


def busiest_moment(calls: list[Made]) -> int:
    """The most calls that are under way at once."""
    steps = sorted([(call.end, -1) for call in calls] + [(call.begin, 1) for call in calls])
    under_way = most = 0
    for _, step in steps:
        under_way += step
        most = max(most, under_way)
    return most


async def play(clock: Clock, seed: int) -> tuple[ProviderLimits, list[Made]]:
    """Let callers come, call, give up and leave as the seed has it."""
    random = Random(seed)

    def perhaps(low: int, high: int) -> int | None:
        return random.randint(low, high) if random.random() < 0.7 else None

    limits = ProviderLimits(
        requests_per_minute=perhaps(1, 20),
        input_tokens_per_minute=perhaps(50, 500),
        output_tokens_per_minute=perhaps(50, 500),
        concurrency=perhaps(1, 6),
        dollars_per_minute=perhaps(1, 5),
    )
    gate = RateLimiter("a", limits, MemoryUsageCounters(clock.now), clock)
    made: list[Made] = []

    async def call(arrival: float, seconds: float, demand: CallUsage) -> None:
        used = CallUsage(
            demand.input_tokens,
            random.randint(0, demand.output_tokens),
            random.randint(0, demand.cost or 0),
        )
        await clock.sleep(arrival)
        reservation = await gate.acquire(demand)
        begin = clock.now()
        if random.random() < 0.1:
            await gate.release(reservation, None)
            return
        try:
            await clock.sleep(seconds)
        finally:
            made.append(Made(begin, clock.now(), used.input_tokens, used.output_tokens, used.cost or 0))
            await gate.release(reservation, used)

    async def visit() -> None:
        task = asyncio.create_task(
            call(
                random.uniform(0, 90),
                random.choice([0.0, random.uniform(0, 5), random.uniform(0, 80)]),
                CallUsage(random.randint(1, 50), random.randint(0, 50), random.randint(0, DOLLAR)),
            ),
        )
        if random.random() < 0.1:
            await clock.sleep(random.uniform(0, 120))
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            assert isinstance(task.exception(), ResourceExhaustedError)

    await asyncio.gather(*[visit() for _ in range(random.randint(5, 50))])
    return limits, made


def check(limits: ProviderLimits, made: list[Made]) -> None:
    if limits.requests_per_minute is not None:
        assert busiest_minute([(call.begin, 1) for call in made]) <= limits.requests_per_minute
    if limits.input_tokens_per_minute is not None:
        used = busiest_minute([(call.begin, call.input_tokens) for call in made])
        assert used <= limits.input_tokens_per_minute
    # Whenever the provider counts them: at the beginning, at the end, or at any moment between.
    for share in (0.0, 0.3, 1.0):
        moments = [(call.begin + share * (call.end - call.begin), call) for call in made]
        if limits.output_tokens_per_minute is not None:
            used = busiest_minute([(at, call.output_tokens) for at, call in moments])
            assert used <= limits.output_tokens_per_minute
        if limits.pico_dollars_per_minute is not None:
            used = busiest_minute([(at, call.cost) for at, call in moments])
            assert used <= limits.pico_dollars_per_minute
    if limits.concurrency is not None:
        assert busiest_moment(made) <= limits.concurrency


def test_no_minute_and_no_moment_sees_more_than_the_limits() -> None:
    for seed in range(SCHEDULES):
        patience = None if seed % 3 else 100.0
        limits, made = in_virtual_time(lambda clock, seed=seed: play(clock, seed), patience)  # type: ignore[misc]
        try:
            check(limits, made)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize(
    ("limits", "demand", "seconds"),
    [
        ({"requests_per_minute": 60}, CallUsage(1, 1), 10.0),
        ({"requests_per_minute": 7}, CallUsage(1, 1), 0.0),
        ({"input_tokens_per_minute": 1000}, CallUsage(10, 500), 20.0),
        ({"output_tokens_per_minute": 4000}, CallUsage(10, 10), 2.0),
        ({"concurrency": 3}, CallUsage(1, 1), 0.5),
        ({"dollars_per_minute": 4}, CallUsage(1, 1, DOLLAR // 100), 2.0),
    ],
)
def test_under_load_what_the_limits_allow_is_used(
    limits: dict[str, int],
    demand: CallUsage,
    seconds: float,
) -> None:
    async def scene(clock: Clock) -> float:
        gate = RateLimiter("a", ProviderLimits(**limits), MemoryUsageCounters(clock.now), clock)
        random = Random(3)
        used = busy = 0.0

        async def keep_calling() -> None:
            nonlocal used, busy
            while True:
                most = CallUsage(demand.input_tokens, demand.output_tokens * 4, (demand.cost or 0) * 4)
                reservation = await gate.acquire(most)
                used += 1
                duration = seconds * random.uniform(0.5, 1)
                await clock.sleep(duration)
                busy += duration
                await gate.release(reservation, demand)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(600 - 1e-6):
                await asyncio.gather(*[keep_calling() for _ in range(100)])
        match limits:
            case {"requests_per_minute": limit}:
                return used / limit / 10
            case {"input_tokens_per_minute": limit}:
                return used * demand.input_tokens / limit / 10
            case {"output_tokens_per_minute": limit}:
                return used * demand.output_tokens / limit / 10
            case {"dollars_per_minute": limit}:
                return used * (demand.cost or 0) / DOLLAR / limit / 10
        return busy / limits["concurrency"] / 600

    assert in_virtual_time(scene) >= 0.95
