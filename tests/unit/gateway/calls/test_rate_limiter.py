"""Rate limiter: admitted calls and their waiting times."""

from __future__ import annotations

import asyncio
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.config import ProviderLimits
from peripety.errors import FailedPreconditionError, ResourceExhaustedError
from peripety.gateway.calls.rate_limiter import (
    CallUsage,
    LimitReservation,
    LimitUsage,
    MemoryUsageCounters,
    RateLimiter,
    estimate_usage,
)
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from support.gateway.requests import call_of
from support.servers.virtual_time import NOON, in_virtual_time

if TYPE_CHECKING:
    from peripety.core.call_context import Clock


SMALL = CallUsage(10, 10)
SLOT = 0.1  # what was used counts for a minute and up to this much more


class Passage:
    """Calls that go through a gate, and when each was let in."""

    def __init__(self, clock: Clock, **limits: Any) -> None:
        self.clock = clock
        self.gate = RateLimiter("generic/m", ProviderLimits(**limits), MemoryUsageCounters(clock.now), clock)
        self.entered: dict[str, float] = {}

    async def go(
        self,
        name: str,
        *,
        seconds: float = 0,
        demand: CallUsage = SMALL,
        used: CallUsage | None = SMALL,
    ) -> None:
        reservation = await self.gate.acquire(demand)
        self.entered[name] = self.clock.now()
        try:
            await self.clock.sleep(seconds)
        finally:
            await self.gate.release(reservation, used)


def test_requests_beyond_the_limit_wait_until_the_minute_is_over() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, requests_per_minute=2)
        await asyncio.gather(*[passage.go(name) for name in "abcde"])
        assert list(passage.entered) == list("abcde")
        a, b, c, d, e = passage.entered.values()
        assert (a, b) == (0, 0)
        assert 60 <= c == d <= 60 + SLOT
        assert 60 <= e - d <= 60 + SLOT

    in_virtual_time(scene)


def test_a_call_that_ends_makes_room_for_another_at_once() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, concurrency=2)
        await asyncio.gather(passage.go("a", seconds=3), passage.go("b", seconds=7), passage.go("c"))
        assert passage.entered == {"a": 0, "b": 0, "c": 3}

    in_virtual_time(scene)


def test_tokens_that_were_set_aside_and_not_used_are_given_back() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, output_tokens_per_minute=100, input_tokens_per_minute=100)
        large = CallUsage(90, 90)
        await asyncio.gather(
            passage.go("a", seconds=5, demand=large, used=CallUsage(10, 10)),
            passage.go("b", demand=large),
        )
        assert passage.entered == {"a": 0, "b": 5}

    in_virtual_time(scene)


def test_tokens_that_were_used_beyond_what_was_set_aside_are_accounted_for() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, input_tokens_per_minute=100)
        await passage.go("a", used=CallUsage(95, 0))
        await passage.go("b")
        assert passage.entered["b"] >= 60

    in_virtual_time(scene)


def test_output_counts_from_when_it_may_have_been_written_to_a_minute_after_the_end() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, output_tokens_per_minute=100)
        whole = CallUsage(1, 100)
        await asyncio.gather(passage.go("a", seconds=50, demand=whole, used=whole), passage.go("b"))
        assert 110 <= passage.entered["b"] <= 110 + SLOT

    in_virtual_time(scene)


def test_a_call_that_was_not_made_costs_nothing() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, requests_per_minute=1, input_tokens_per_minute=10)
        for name in "abc":
            await passage.go(name, used=None)
        assert set(passage.entered.values()) == {0}

    in_virtual_time(scene)


def test_a_call_that_has_to_wait_for_longer_than_its_caller_is_told_when_to_come_back() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, requests_per_minute=1)
        await passage.go("a")
        with pytest.raises(ResourceExhaustedError, match="generic/m") as caught:
            await passage.go("b")
        assert clock.now() == 0
        assert caught.value.code == "LIMIT_REACHED"
        assert caught.value.retry_after == pytest.approx(60, abs=2 * SLOT)

    in_virtual_time(scene, patience=30)


def test_a_call_waits_for_another_to_end_no_longer_than_its_caller_does() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, concurrency=1)
        first = asyncio.create_task(passage.go("a", seconds=100))
        await asyncio.sleep(0)
        with pytest.raises(ResourceExhaustedError) as caught:
            await passage.go("b")
        assert caught.value.code == "LIMIT_REACHED"
        assert clock.now() == 30
        await first

    in_virtual_time(scene, patience=30)


def test_a_large_call_is_not_passed_by_small_ones() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, input_tokens_per_minute=100)
        await passage.go("a", used=CallUsage(50, 0))
        await asyncio.gather(passage.go("large", demand=CallUsage(80, 1)), passage.go("small"))
        assert list(passage.entered) == ["a", "large", "small"]

    in_virtual_time(scene)


@pytest.mark.parametrize("place", [0, 1])
def test_whoever_leaves_the_queue_does_not_hold_up_those_behind(place: int) -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, concurrency=1)
        first = asyncio.create_task(passage.go("a", seconds=5))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(passage.go(name)) for name in "bcd"]
        await asyncio.sleep(1)
        waiting[place].cancel()
        await asyncio.wait([first, *waiting])
        assert passage.entered == {"a": 0} | {name: 5 for name in "bcd" if name != "bcd"[place]}

    in_virtual_time(scene)


@pytest.mark.parametrize("demand", [CallUsage(101, 1), CallUsage(1, 101)])
def test_what_will_never_fit_is_refused_with_the_way_out(demand: CallUsage) -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, input_tokens_per_minute=100, output_tokens_per_minute=100)
        with pytest.raises(ResourceExhaustedError, match="PERIPETY_LIMITS") as caught:
            await passage.go("a", demand=demand)
        assert (caught.value.code, caught.value.retry_after) == ("LIMIT_TOO_SMALL", None)

    in_virtual_time(scene)


def test_without_limits_nobody_waits() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock)
        await asyncio.gather(*[passage.go(str(name), demand=CallUsage(10**9, 10**9)) for name in range(500)])
        assert set(passage.entered.values()) == {0}

    in_virtual_time(scene)


def test_accounts_do_not_share_their_limits() -> None:
    async def scene(clock: Clock) -> None:
        counters = MemoryUsageCounters(clock.now)
        limits = ProviderLimits(requests_per_minute=1)
        for account in ("generic/a", "generic/b"):
            assert not isinstance(await counters.reserve(account, limits, SMALL), float)
            assert await counters.reserve(account, limits, SMALL) > 0  # type: ignore[operator] # it is refused

    in_virtual_time(scene)


def test_counters_tell_how_long_to_wait() -> None:
    async def scene(clock: Clock) -> None:
        counters = MemoryUsageCounters(clock.now)
        limits = ProviderLimits(input_tokens_per_minute=100, concurrency=2)
        await counters.reserve("a", limits, CallUsage(60, 1))
        await clock.sleep(20)
        await counters.settle(await reserved(counters, limits, CallUsage(40, 1)), CallUsage(40, 1))
        assert await counters.reserve("a", limits, CallUsage(60, 1)) == pytest.approx(40, abs=2 * SLOT)
        assert await counters.reserve("a", limits, CallUsage(61, 1)) == pytest.approx(60, abs=2 * SLOT)
        await clock.sleep(61)
        await reserved(counters, limits, CallUsage(1, 1))
        assert await counters.reserve("a", limits, CallUsage(1, 1)) == math.inf

    in_virtual_time(scene)


async def reserved(
    counters: MemoryUsageCounters,
    limits: ProviderLimits,
    demand: CallUsage,
) -> LimitReservation:
    reservation = await counters.reserve("a", limits, demand)
    assert not isinstance(reservation, float)
    return reservation


def demand(request: GenerateRequest, **limits: Any) -> CallUsage:
    return estimate_usage(call_of(request, "claude-opus-5-5", "anthropic"), ProviderLimits(**limits), NOON)


def question(text: str, **options: int) -> GenerateRequest:
    return GenerateRequest(None, (ChatMessage.user(text),), **options)  # type: ignore[arg-type]


def test_the_prompt_counts_whatever_it_is_made_of() -> None:
    small = demand(question("a" * 300)).input_tokens
    assert 100 <= small <= 130
    assert demand(question("あ" * 300)).input_tokens >= 300
    assert demand(question("\ud800")).input_tokens > 0
    schema = ResponseSchema("a", {"description": "x" * 3000})
    with_schema = GenerateRequest("s" * 3000, question("a" * 300).messages, schema)
    assert demand(with_schema).input_tokens >= small + 2000


@pytest.mark.parametrize(
    ("asked", "limits", "expected"),
    [
        (50, {}, 50),
        (50, {"output_tokens_per_minute": 20}, 50),
        (None, {}, 32_000),
        (None, {"output_tokens_per_minute": 1000}, 1000),
        (
            None,
            {"dollars_per_minute": Decimal("0.020136")},
            1000,
        ),  # the prompt takes $0.000136, a token $0.00002
        (None, {"dollars_per_minute": Decimal("0.000001")}, 1),
        (None, {"dollars_per_minute": 5}, 32_000),
    ],
)
def test_an_answer_of_open_length_is_taken_to_fit(asked: int, limits: dict[str, Any], expected: int) -> None:
    assert demand(question("a", max_output_tokens=asked), **limits).output_tokens == expected


def test_a_call_is_taken_to_cost_the_most_that_it_can() -> None:
    assert demand(question("a", max_output_tokens=100)).cost == 2_136 * 10**6
    unknown = call_of(question("a"), "unheard-of", "openai")
    assert estimate_usage(unknown, ProviderLimits(), NOON).cost is None


def test_money_is_limited_like_what_it_pays_for() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, dollars_per_minute=Decimal("0.000000001"))
        most = CallUsage(1, 1, 1000)
        await asyncio.gather(
            passage.go("a", seconds=20, demand=most, used=CallUsage(1, 1, 300)),
            passage.go("b", demand=most, used=CallUsage(1, 1, 700)),
            passage.go("c", demand=CallUsage(1, 1, 700), used=CallUsage(1, 1, 700)),
        )
        assert passage.entered["a"] == 0
        assert 80 <= passage.entered["b"] <= 80 + SLOT
        assert 140 <= passage.entered["c"] <= 140 + 2 * SLOT

    in_virtual_time(scene)


def test_a_call_that_costs_more_than_a_minute_may_or_nobody_knows_what_is_refused() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock, dollars_per_minute=1)
        with pytest.raises(
            ResourceExhaustedError,
            match=r"cost 1\.5 dollars, and the limit of generic/m is 1 per",
        ):
            await passage.go("a", demand=CallUsage(1, 1, 15 * 10**11))
        with pytest.raises(FailedPreconditionError, match="PERIPETY_MODELS") as caught:
            await passage.go("a", demand=CallUsage(1, 1, None))
        assert caught.value.code == "PRICE_UNKNOWN"

    in_virtual_time(scene)


def test_what_is_given_back_while_the_counters_answer_is_noticed() -> None:
    class Distant(MemoryUsageCounters):
        async def reserve(
            self,
            account: str,
            limits: ProviderLimits,
            estimate: CallUsage,
        ) -> LimitReservation | float:
            answer = await super().reserve(account, limits, estimate)
            await asyncio.sleep(1)
            return answer

    async def scene(clock: Clock) -> None:
        passage = Passage(clock, concurrency=1)
        passage.gate = RateLimiter("generic/m", ProviderLimits(concurrency=1), Distant(clock.now), clock)
        async with asyncio.timeout(10):
            await asyncio.gather(passage.go("a", seconds=0.5), passage.go("b"))
        assert list(passage.entered) == ["a", "b"]

    in_virtual_time(scene)


def test_the_use_of_limits_can_be_read() -> None:
    async def scene(clock: Clock) -> None:
        passage = Passage(clock)
        assert await passage.gate.read_usage() == LimitUsage()
        reservation = await passage.gate.acquire(CallUsage(10, 20, 30))
        assert await passage.gate.read_usage() == LimitUsage(1, 10, 20, 30, 1)
        await passage.gate.release(reservation, CallUsage(11, 5, 7))
        assert await passage.gate.read_usage() == LimitUsage(1, 11, 5, 7, 0)
        await clock.sleep(61)
        assert await passage.gate.read_usage() == LimitUsage()

    in_virtual_time(scene)
