"""Many requests that begin alike: who goes first, and who waits for what."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from peripety.core.concurrency import closing
from peripety.errors import InternalError, UnavailableError
from peripety.gateway.batch import BatchOutcome, WarmupGateway, WarmupPolicy, fan_out, warmup_policy_of
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import Completed, Completion, FallingBack, StopReason, TextDelta, Usage
from support.servers.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.call_context import Clock
    from peripety.gateway.types.response import GatewayEvent


DOWN = UnavailableError("x", code="PROVIDER_FAILED")
FELL = FallingBack("a/m", "b/m", DOWN)


@dataclass
class Timed:
    """Answers after 1 s, begins to after 0.5 s; notes when each request came. Some fail at once."""

    failing: frozenset[str] = frozenset()
    falls: bool = False
    begun: dict[str, float] = field(default_factory=dict)
    running: int = 0
    most: int = 0

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        name = request.messages[0].text
        self.begun[name] = asyncio.get_running_loop().time()
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if name in self.failing:
                raise DOWN
            if self.falls:
                yield FELL
            await asyncio.sleep(0.5)
            yield TextDelta("a")
            await asyncio.sleep(0.5)
            yield Completed(_completion())
        finally:
            self.running -= 1

    async def generate(self, request: GenerateRequest) -> Completion:
        raise AssertionError(request)


def _completion() -> Completion:
    return Completion(ChatMessage.assistant("a"), None, Usage(), StopReason.END, "m", "a")


def requests(number: int) -> list[GenerateRequest]:
    return [GenerateRequest("s", (ChatMessage.user(str(index)),)) for index in range(number)]


def played(
    gateway: Timed,
    number: int,
    *,
    release: WarmupPolicy = WarmupPolicy.AT_FIRST_EVENT,
    at_once: int = 16,
) -> list[BatchOutcome]:
    async def scene(_clock: Clock) -> list[BatchOutcome]:
        outcomes = fan_out(gateway, requests(number), release, max_concurrency=at_once)
        return [outcome async for outcome in outcomes]

    return in_virtual_time(scene)


@pytest.mark.parametrize(
    ("release", "begun"),
    [(WarmupPolicy.AT_ONCE, 0), (WarmupPolicy.AT_FIRST_EVENT, 0.5), (WarmupPolicy.AT_END, 1)],
)
def test_the_others_go_when_the_first_can_be_read(release: WarmupPolicy, begun: float) -> None:
    gateway = Timed()
    outcomes = played(gateway, 4, release=release)
    assert gateway.begun == {"0": 0, "1": begun, "2": begun, "3": begun}
    assert sorted(outcome.index for outcome in outcomes) == [0, 1, 2, 3]
    assert all(isinstance(outcome.result, Completion) for outcome in outcomes)


def test_when_the_first_fails_the_next_takes_its_place() -> None:
    gateway = Timed(failing=frozenset({"0", "1"}))
    outcomes = played(gateway, 5)
    assert gateway.begun == {"0": 0, "1": 0, "2": 0, "3": 0.5, "4": 0.5}
    assert {outcome.index for outcome in outcomes if outcome.result is DOWN} == {0, 1}


def test_one_that_fails_later_stops_nobody() -> None:
    outcomes = played(Timed(failing=frozenset({"2"})), 4)
    assert [outcome.index for outcome in outcomes if outcome.result is DOWN] == [2]
    assert len(outcomes) == 4


def test_a_fallback_is_no_beginning_of_an_answer() -> None:
    gateway = Timed(falls=True)
    played(gateway, 2)
    assert gateway.begun["1"] == 0.5


def test_no_more_go_at_once_than_are_allowed() -> None:
    gateway = Timed()
    assert len(played(gateway, 9, at_once=3)) == 9
    assert gateway.most == 3


def test_who_begins_differently_waits_for_nobody() -> None:
    gateway = Timed()
    asked = [replace(request, system=system) for request, system in zip(requests(4), "aabb", strict=True)]

    async def scene(_clock: Clock) -> None:
        outcomes = fan_out(
            gateway,
            [*asked, GenerateRequest(None, (ChatMessage.user("4"),))],
            WarmupPolicy.AT_END,
        )
        assert len([outcome async for outcome in outcomes]) == 5

    in_virtual_time(scene)
    assert gateway.begun == {"0": 0, "1": 1, "2": 0, "3": 1, "4": 0}


def test_when_the_caller_of_the_first_leaves_the_next_takes_its_place() -> None:
    gateway = Timed()
    in_turn = WarmupGateway(gateway, lambda _: WarmupPolicy.AT_END)

    async def scene(_clock: Clock) -> None:
        first, second, third = (asyncio.create_task(in_turn.generate(each)) for each in requests(3))
        await asyncio.sleep(0.25)
        first.cancel()
        await asyncio.gather(second, third)

    in_virtual_time(scene)
    assert gateway.begun == {"0": 0, "1": 0.25, "2": 1.25}


def test_nothing_to_ask_ends_at_once() -> None:
    assert played(Timed(), 0) == []


def test_who_leaves_early_closes_all_calls() -> None:
    gateway = Timed()

    async def scene(_clock: Clock) -> int:
        async with closing(fan_out(gateway, requests(4), WarmupPolicy.AT_END)) as outcomes:
            async for _ in outcomes:
                break
        return gateway.running

    assert in_virtual_time(scene) == 0


def test_a_defect_ends_all_of_it() -> None:
    class Broken(Timed):
        async def stream(self, _request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
            raise ZeroDivisionError
            yield

    with pytest.raises(ExceptionGroup):
        played(Broken(), 2)


def test_a_stream_without_an_end_is_an_error_of_its_request() -> None:
    class Silent(Timed):
        async def stream(self, _request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
            yield TextDelta("a")

    (outcome,) = played(Silent(), 1)
    assert isinstance(outcome.result, InternalError)


@pytest.mark.parametrize(
    ("provider", "model", "release"),
    [
        ("anthropic", "claude-opus-5-5", WarmupPolicy.AT_FIRST_EVENT),
        ("openai", "gpt-6.2-sol", WarmupPolicy.AT_END),
        ("openai", "gpt-4.1", WarmupPolicy.AT_END),
        ("deepseek", "deepseek-flash", WarmupPolicy.AT_END),
        ("generic", "m", WarmupPolicy.AT_ONCE),
    ],
)
def test_every_kind_of_cache_says_when_it_can_be_read(
    provider: str,
    model: str,
    release: WarmupPolicy,
) -> None:
    assert warmup_policy_of(ModelCatalog.load().find(provider, model).cache) is release
