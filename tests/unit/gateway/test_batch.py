"""Requests with a common prefix: order of the calls.

Batches of prompts: input, requests, events and memory bounds.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from peripety.core.concurrency import closing
from peripety.errors import InternalError, InvalidArgumentError, PeripetyError, UnavailableError
from peripety.gateway.batch import (
    BatchItem,
    BatchItemResult,
    BatchOutcome,
    BatchRunner,
    WarmupGateway,
    WarmupPolicy,
    fan_out,
    warmup_policy_of,
)
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache.tiers import MemoryTier, ResponseCache
from peripety.gateway.types.message import ChatMessage, Tool
from peripety.gateway.types.request import GenerateRequest, ResponseCacheMode
from peripety.gateway.types.response import Completed, Completion, FallingBack, StopReason, TextDelta, Usage
from support.gateway.fake_gateway import COST, FakeGateway, GatedGateway, answer, question
from support.servers.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from peripety.core.call_context import Clock
    from peripety.gateway.types.response import GatewayEvent


DOWN = UnavailableError("x", code="PROVIDER_FAILED")
FELL = FallingBack("a/m", "b/m", DOWN)


class Timed(FakeGateway):
    """Answers after 1 s, begins to after 0.5 s; notes when each request came. Some fail at once."""

    def __init__(self, *, failing: frozenset[str] = frozenset(), falls: bool = False) -> None:
        super().__init__()
        self.failing = failing
        self.falls = falls
        self.begun: dict[str, float] = {}

    async def respond(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        name = request.messages[0].text
        self.begun[name] = asyncio.get_running_loop().time()
        if name in self.failing:
            raise DOWN
        if self.falls:
            yield FELL
        await asyncio.sleep(0.5)
        yield TextDelta("a")
        await asyncio.sleep(0.5)
        yield Completed(_completion())


def _completion() -> Completion:
    return Completion(ChatMessage.assistant("a"), None, Usage(), StopReason.END, "m", "a")


def requests(number: int) -> list[GenerateRequest]:
    return [GenerateRequest("s", (ChatMessage.user(str(index)),)) for index in range(number)]


def played(
    gateway: FakeGateway,
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
    assert gateway.most_running == 3


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
    with pytest.raises(ExceptionGroup):
        played(FakeGateway(ZeroDivisionError()), 2)


def test_a_stream_without_an_end_is_an_error_of_its_request() -> None:
    (outcome,) = played(FakeGateway([TextDelta("a")]), 1)
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


BATCH = "00000000-0000-4000-8000-000000000000"


class Sending:
    """Batches in front of calls that the test decides."""

    def __init__(self, under_way: int = 64) -> None:
        self.inner = GatedGateway()
        self.read: list[str] = []
        self.hits: list[str] = []
        cache = ResponseCache(MemoryTier(1_000_000), [], ttl=60, clock=lambda: 0.0)
        self.batches = BatchRunner(
            self.inner,
            cache,
            lambda _: AnswerSource("p", "m", "a"),
            lambda request: WarmupPolicy.AT_FIRST_EVENT if request.tools else WarmupPolicy.AT_ONCE,
            lambda completion, _: self.hits.append(completion.text),
            under_way,
        )

    async def items(self, *items: BatchItem) -> AsyncIterator[BatchItem]:
        for item_ in items:
            self.read.append(item_.item_id)
            yield item_

    def send(self, *items: BatchItem) -> AsyncIterator[list[BatchItemResult]]:
        return self.batches.run(self.items(*items))

    def results(self, *items: BatchItem) -> asyncio.Task[dict[str, Completion | PeripetyError]]:
        async def gather() -> dict[str, Completion | PeripetyError]:
            return {r.item_id: r.outcome async for results in self.send(*items) for r in results}

        return asyncio.create_task(gather())

    async def call(self, text: str) -> None:
        """Wait for a call with this question, and answer it with the same text."""
        (await self.inner.call_about(text)).finish(answer(text))

    async def next(self, batches: AsyncIterator[list[BatchItemResult]], text: str) -> list[BatchItemResult]:
        """Read results while the question with this text is answered."""
        results, _ = await asyncio.gather(anext(batches), self.call(text))
        return results


@pytest.fixture
async def sending() -> AsyncIterator[Sending]:
    async with asyncio.timeout(10):
        yield Sending()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def item(item_id: str, text: str | None = None, batch_id: str = BATCH) -> BatchItem:
    return BatchItem(batch_id, item_id, question(text or item_id, ResponseCacheMode.OFF))


async def test_results_come_in_the_order_in_which_they_are_ready(sending: Sending) -> None:
    async with closing(sending.send(item("a"), item("b"), item("c"))) as batches:
        for name in ("c", "a", "b"):
            assert await sending.next(batches, name) == [BatchItemResult(name, answer(name))]
        assert [results async for results in batches] == []


async def test_one_that_fails_is_no_matter_of_the_others(sending: Sending) -> None:
    refused = InvalidArgumentError("prompt is required")
    results = sending.results(item("a"), BatchItem(BATCH, "b", refused), item("c"))
    (await sending.inner.call(1)).fail(UnavailableError("it hung up"))
    await sending.call("c")
    outcomes = await results
    assert isinstance(outcomes["a"], UnavailableError)
    assert outcomes["b"] is refused
    assert outcomes["c"] == answer("c")


@pytest.mark.parametrize("bad", ["", "x" * 257])
async def test_an_item_needs_a_name_of_its_own(sending: Sending, bad: str) -> None:
    async with closing(sending.send(item("a"), item("a", "again"), item(bad))) as batches:
        first, second = await anext(batches)
        (third,) = await sending.next(batches, "a")
    assert isinstance(first.outcome, InvalidArgumentError)
    assert (first.item_id, first.outcome.code) == ("a", "DUPLICATE_ITEM")
    assert isinstance(second.outcome, InvalidArgumentError)
    assert third.outcome == answer("a")
    assert len(sending.inner.calls) == 1


async def test_no_more_is_read_than_results_are_taken() -> None:
    sending = Sending(under_way=2)
    async with asyncio.timeout(10), closing(sending.send(*map(item, "abcdef"))) as batches:
        assert await sending.next(batches, "a") == [BatchItemResult("a", answer("a"))]
        await sending.call("b")
        for _ in range(20):
            await asyncio.sleep(0)
        # The caller has requested only the first result, so the next item is not started.
        assert sending.read == ["a", "b", "c"]
        assert len(sending.inner.calls) == 2
        assert await anext(batches) == [BatchItemResult("b", answer("b"))]
        await sending.inner.call(3)
        assert sending.read == ["a", "b", "c", "d"]


async def test_of_prompts_that_begin_alike_the_first_goes_alone_until_its_answer_begins(
    sending: Sending,
) -> None:
    alike = [
        BatchItem(BATCH, name, replace(question(name), tools=(Tool("t", "", {"type": "object"}),)))
        for name in ("a", "b", "c")
    ]
    results = sending.results(*alike, item("d"))
    await sending.call("d")
    first = await sending.inner.call_about("a")
    assert {call.request.messages[0].text for call in sending.inner.calls} == {"a", "d"}
    first.write("a")
    for name in ("b", "c", "a"):
        await sending.call(name)
    assert len(await results) == 4


async def test_whoever_leaves_ends_all_calls(sending: Sending) -> None:
    async with closing(sending.send(item("a"), item("b"), item("c"))) as batches:
        await sending.next(batches, "a")
        assert len(sending.inner.open) == 2
    assert sending.inner.open == []
    assert all(call.closed_in_peace for call in sending.inner.calls)


async def test_a_batch_that_is_sent_again_asks_only_what_was_not_answered(sending: Sending) -> None:
    results = sending.results(item("a"), item("b"), item("c"))
    await sending.call("a")
    (await sending.inner.call(2)).finish(answer("b", StopReason.LENGTH))
    (await sending.inner.call(3)).fail(UnavailableError("it hung up"))
    await results
    assert sending.hits == []
    results = sending.results(item("a"), item("b"), item("c"), item("d"))
    await sending.call("c")
    await sending.call("d")
    outcomes = await results
    assert len(sending.inner.calls) == 5
    for name in "ab":
        completion = outcomes[name]
        assert isinstance(completion, Completion)
        assert (completion.text, completion.from_response_cache, completion.calls) == (name, True, 0)
        assert completion.usage == Usage()
    assert outcomes["c"] == answer("c")
    assert sorted(sending.hits) == ["a", "b"]


@pytest.mark.parametrize(
    "other",
    [item("a", "another question"), item("a", "a", BATCH.replace("4", "5")), item("b", "a")],
)
async def test_another_question_batch_or_item_is_asked(sending: Sending, other: BatchItem) -> None:
    for sent in (item("a"), other):
        results = sending.results(sent)
        assert isinstance(sent.request, GenerateRequest)
        await sending.call(sent.request.messages[0].text)
        outcome = (await results)[sent.item_id]
        assert isinstance(outcome, Completion)
        assert outcome.usage == COST


async def test_what_stops_the_reading_stops_the_batch(sending: Sending) -> None:
    async def items() -> AsyncIterator[BatchItem]:
        yield item("a")
        await sending.inner.call(1)
        raise InvalidArgumentError("items has too many items")

    with pytest.raises(InvalidArgumentError, match="too many"):
        await anext(sending.batches.run(items()))
    assert sending.inner.open == []


async def test_a_defect_is_no_result(sending: Sending) -> None:
    results = sending.results(item("a"), item("b"))
    (await sending.inner.call(2)).fail(RuntimeError("a defect"))
    with pytest.raises(RuntimeError, match="a defect"):
        await results
    assert sending.inner.open == []


async def test_an_internal_error_is_one(sending: Sending) -> None:
    results = sending.results(item("a"))
    (await sending.inner.call(1)).fail(InternalError("known"))
    assert isinstance((await results)["a"], InternalError)


async def test_nothing_sent_is_nothing_answered(sending: Sending) -> None:
    assert await sending.results() == {}
