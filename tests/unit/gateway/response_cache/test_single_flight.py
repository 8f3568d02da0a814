"""Single-flight: one call for concurrent equal requests, with joining, leaving, failures and cache modes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.errors import DeadlineError, InternalError, UnavailableError
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache.caching_gateway import CachingModelGateway
from peripety.gateway.response_cache.tiers import MemoryTier, ResponseCache, StoredAnswer, encode_answer
from peripety.gateway.types.request import Budget, GenerateRequest, ResponseCacheMode, ResponseSchema
from peripety.gateway.types.response import (
    Completed,
    Completion,
    FallingBack,
    GatewayEvent,
    Repairing,
    StopReason,
    TextDelta,
    Usage,
)
from support.gateway.fake_gateway import COST, FakeGateway, GatedGateway, answer, question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.errors import Finding


REFRESH = ResponseCacheMode.REFRESH
OFF = ResponseCacheMode.OFF


class Asking:
    """A cache in front of calls that the test decides."""

    def __init__(self, *, memory: int = 1_000_000) -> None:
        self.inner = GatedGateway()
        self.cache = ResponseCache(MemoryTier(memory), [], ttl=60, clock=lambda: 0.0)
        self.gateway = CachingModelGateway(self.inner, self.cache, self.answerer)
        self.account = "a"

    def answerer(self, request: GenerateRequest) -> AnswerSource:
        return AnswerSource("p", request.model or "m", self.account)

    def ask(self, request: GenerateRequest | None = None) -> asyncio.Task[list[GatewayEvent]]:
        return asyncio.create_task(self._events(request or question()))

    async def asked(self, text: str = "text", request: GenerateRequest | None = None) -> list[GatewayEvent]:
        """Send a request, answer the call with this text, and return the events."""
        task = self.ask(request)
        call = await self.inner.call(len(self.inner.calls) + 1)
        call.write(text)
        call.finish(answer(text))
        return await task

    async def _events(self, request: GenerateRequest) -> list[GatewayEvent]:
        return [event async for event in self.gateway.stream(request)]


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    made = Asking()
    async with asyncio.timeout(10):
        yield made
        await made.gateway.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def settle() -> None:
    """Run all tasks until they block."""
    for _ in range(20):
        await asyncio.sleep(0)


def completion(events: Sequence[GatewayEvent]) -> Completion:
    assert isinstance(events[-1], Completed)
    return events[-1].completion


def text(events: Sequence[GatewayEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def is_free(given: Completion) -> bool:
    return given.from_response_cache and given.usage == Usage() and given.calls == 0


async def test_a_question_is_asked_once(asking: Asking) -> None:
    first = await asking.asked("text")
    assert (completion(first).usage, completion(first).from_response_cache) == (COST, False)
    second = await asking.ask()
    assert is_free(completion(second))
    assert text(first) == text(second) == completion(second).text
    assert len(asking.inner.calls) == 1


async def test_the_whole_answer_can_be_waited_for(asking: Asking) -> None:
    await asking.asked("text")
    assert (await asking.gateway.generate(question())).text == "text"


async def test_off_asks_always_and_stores_nothing(asking: Asking) -> None:
    for _ in range(2):
        assert completion(await asking.asked(request=question(mode=OFF))).calls == 1
    tasks = [asking.ask(question(mode=OFF)) for _ in range(2)]
    await asking.inner.call(4)
    assert asking.inner.most_at_once == 2
    for call in asking.inner.open:
        call.finish(answer("x"))
    await asyncio.gather(*tasks)
    await asking.asked()


async def test_refresh_asks_and_replaces(asking: Asking) -> None:
    await asking.asked("old")
    assert completion(await asking.asked("new", question(mode=REFRESH))).usage == COST
    assert text(await asking.ask()) == "new"


async def test_a_refresh_that_cannot_be_stored_leaves_the_old_answer(asking: Asking) -> None:
    await asking.asked("old")
    task = asking.ask(question(mode=REFRESH))
    (await asking.inner.call(2)).finish(answer("cut", StopReason.LENGTH))
    await task
    assert text(await asking.ask()) == "old"


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.REFUSAL, StopReason.OTHER])
async def test_an_answer_without_an_end_is_asked_for_again(asking: Asking, reason: StopReason) -> None:
    task = asking.ask()
    (await asking.inner.call(1)).finish(answer("half", reason))
    assert completion(await task).stop_reason is reason
    assert text(await asking.asked("whole")) == "whole"


async def test_one_account_is_never_given_the_answer_of_another(asking: Asking) -> None:
    await asking.asked("mine")
    asking.account = "b"
    assert text(await asking.asked("theirs")) == "theirs"


async def test_a_request_with_a_check_of_its_own_is_asked_for_itself(asking: Asking) -> None:
    async def accept(_value: object) -> list[Finding]:
        return []

    checked = replace(question(), schema=ResponseSchema("answer", {}, accept))
    for number in (1, 2):
        await asking.asked(request=checked)
        assert len(asking.inner.calls) == number


async def test_whoever_joins_gets_the_stream_from_its_first_event_while_it_is_written(asking: Asking) -> None:
    leader = asking.ask()
    call = await asking.inner.call(1)
    call.write("a")
    await settle()
    async with closing(asking.gateway.stream(question())) as events:
        assert await anext(events) == TextDelta("a")
        call.write("b")
        assert await anext(events) == TextDelta("b")
        call.finish(answer("ab"))
        last = await anext(events)
    assert isinstance(last, Completed)
    assert is_free(last.completion)
    assert completion(await leader).usage == COST
    assert len(asking.inner.calls) == 1


@pytest.mark.parametrize("other", [{"budget": Budget(max_tokens=300)}, {"conversation_id": "c"}])
async def test_a_budget_cuts_nobody_elses_answer_short(asking: Asking, other: dict[str, Any]) -> None:
    capped = asking.ask(replace(question(), **other))
    (await asking.inner.call(1)).write("cut")
    free = asking.ask(question())
    second = await asking.inner.call(2)
    asking.inner.calls[0].finish(answer("cut", StopReason.LENGTH))
    second.finish(answer("whole"))
    assert completion(await capped).stop_reason is StopReason.LENGTH
    assert completion(await free) == answer("whole")


async def test_different_questions_do_not_wait_for_each_other(asking: Asking) -> None:
    tasks = [asking.ask(question(text)) for text in "ab"]
    second = await asking.inner.call(2)
    second.finish(answer("x"))
    assert completion(await tasks[1]).usage == COST
    asking.inner.calls[0].finish(answer("x"))
    await tasks[0]


async def test_a_caller_who_leaves_takes_the_call_from_nobody(asking: Asking) -> None:
    leader, follower, stays = (asking.ask() for _ in range(3))
    call = await asking.inner.call(1)
    call.write("a")
    await settle()
    for gone in (follower, leader):
        gone.cancel()
        await asyncio.wait([gone])
        assert not call.closed
    call.finish(answer("a"))
    # The remaining caller now accounts for the call.
    assert completion(await stays) == answer("a")
    assert len(asking.inner.calls) == 1


async def test_the_last_one_who_leaves_closes_the_call_before_being_gone(asking: Asking) -> None:
    tasks = [asking.ask() for _ in range(2)]
    call = await asking.inner.call(1)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert call.closed


async def test_leaving_early_closes_the_call(asking: Asking) -> None:
    async with closing(asking.gateway.stream(question())) as events:
        first = asyncio.ensure_future(anext(events))
        call = await asking.inner.call(1)
        call.write("a")
        await first
    assert call.closed


async def test_who_comes_while_a_call_is_being_closed_asks_after_that(asking: Asking) -> None:
    leaver = asking.ask()
    call = await asking.inner.call(1)
    leaver.cancel()
    await call.closing.wait()
    assert not call.closed
    assert text(await asking.asked("b")) == "b"
    assert asking.inner.most_at_once == 1


async def test_a_failure_is_the_leaders_and_the_next_one_asks_again(asking: Asking) -> None:
    tasks = [asking.ask() for _ in range(3)]
    for number in (1, 2):
        (await asking.inner.call(number)).fail(UnavailableError(str(number)))
        await settle()
    (await asking.inner.call(3)).finish(answer("x"))
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes[:2]] == ["1", "2"]
    assert isinstance(outcomes[2], list)
    assert completion(outcomes[2]).usage == COST
    assert asking.inner.most_at_once == 1


async def test_after_a_failure_the_new_answer_goes_on_where_the_old_one_broke_off(asking: Asking) -> None:
    leader, follower = asking.ask(), asking.ask()
    call = await asking.inner.call(1)
    call.write("abc")
    await settle()
    call.fail(UnavailableError("cut"))
    call = await asking.inner.call(2)
    for piece in ("ab", "cd", "e"):
        call.write(piece)
    call.finish(answer("abcde"))
    with pytest.raises(UnavailableError):
        await leader
    assert await follower == [*map(TextDelta, ("abc", "d", "e")), Completed(answer("abcde"))]


@pytest.mark.parametrize("new", ["abX", "ab", "X", ""])
async def test_a_new_answer_that_goes_elsewhere_is_the_failure_it_was(asking: Asking, new: str) -> None:
    leader, follower = asking.ask(), asking.ask()
    call = await asking.inner.call(1)
    call.write("abc")
    await settle()
    call.fail(UnavailableError("cut"))
    call = await asking.inner.call(2)
    if new:
        call.write(new)
    call.finish(answer(new))
    outcomes = await asyncio.gather(leader, follower, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["cut", "cut"]


async def test_a_repair_lets_the_new_answer_be_another_one(asking: Asking) -> None:
    leader, follower = asking.ask(), asking.ask()
    call = await asking.inner.call(1)
    call.write("abc")
    await settle()
    call.fail(UnavailableError("cut"))
    call = await asking.inner.call(2)
    call.write("ab")
    call.send(Repairing(()))
    call.write("xyz")
    call.finish(answer("xyz"))
    with pytest.raises(UnavailableError):
        await leader
    assert await follower == [TextDelta("abc"), Repairing(()), TextDelta("xyz"), Completed(answer("xyz"))]


async def test_falling_back_is_told_and_does_not_keep_a_new_answer_from_going_on(asking: Asking) -> None:
    leader, follower = asking.ask(), asking.ask()
    told = FallingBack("a/m", "b/m", UnavailableError("down"))
    call = await asking.inner.call(1)
    call.send(told)
    await settle()
    call.fail(UnavailableError("cut"))
    call = await asking.inner.call(2)
    call.write("ab")
    call.finish(answer("ab"))
    with pytest.raises(UnavailableError):
        await leader
    assert await follower == [told, TextDelta("ab"), Completed(answer("ab"))]


async def test_nobody_sees_two_repairs(asking: Asking) -> None:
    leader, follower = asking.ask(), asking.ask()
    for number in (1, 2):
        call = await asking.inner.call(number)
        call.send(Repairing(()))
        await settle()
        call.fail(UnavailableError(f"cut {number}"))
    outcomes = await asyncio.gather(leader, follower, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["cut 1", "cut 1"]


async def test_a_caller_keeps_to_its_own_deadline_and_the_call_to_none(asking: Asking) -> None:
    async def hurried() -> list[GatewayEvent]:
        call_context.begin_call(request_id=None, timeout=0.5)
        return await asking.ask()

    leader = asyncio.create_task(hurried())
    call = await asking.inner.call(1)
    assert call.remaining is None
    patient = asking.ask()
    with pytest.raises(DeadlineError):
        await leader
    call.finish(answer("x"))
    assert completion(await patient).usage == COST


async def test_a_stream_without_an_end_is_a_defect_and_no_answer(asking: Asking) -> None:
    gateway = CachingModelGateway(FakeGateway([TextDelta("u")]), asking.cache, asking.answerer)
    with pytest.raises(InternalError):
        await gateway.generate(question())
    await gateway.aclose()


async def test_an_answer_on_the_disk_is_found_once_for_all_and_refused_by_who_wants_a_new_one() -> None:
    class Slow(ResponseCache):
        def __init__(self) -> None:
            super().__init__(MemoryTier(0), [], ttl=60, clock=lambda: 0.0)
            self.looks: list[str] = []

        async def get(self, key: str) -> StoredAnswer | None:
            self.looks.append(key)
            await opened.wait()
            return StoredAnswer(encode_answer(answer("old")), 0.0)

    opened = asyncio.Event()
    asking = Asking()
    slow = Slow()
    asking.gateway = CachingModelGateway(asking.inner, slow, asking.answerer)
    async with asyncio.timeout(10):
        using = [asking.ask(), asking.ask()]
        await settle()
        refreshing = asking.ask(question(mode=REFRESH))
        await settle()
        opened.set()
        for task in using:
            assert text(await task) == "old"
        assert len(slow.looks) == 1
        (await asking.inner.call(1)).finish(answer("new"))
        assert completion(await refreshing) == answer("new")
        await asking.gateway.aclose()


async def test_closing_does_not_interrupt_a_call_that_is_being_closed(asking: Asking) -> None:
    leaver = asking.ask()
    call = await asking.inner.call(1)
    leaver.cancel()
    await call.closing.wait()
    assert not call.closed
    await asking.gateway.aclose()
    assert call.closed_in_peace


async def test_closing_ends_what_is_under_way_and_nothing_begins_after_it(asking: Asking) -> None:
    tasks = [asking.ask() for _ in range(3)]
    call = await asking.inner.call(1)
    await asking.gateway.aclose()
    assert call.closed
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, UnavailableError)
        assert outcome.code == "SERVER_SHUTTING_DOWN"
    assert len(asking.inner.calls) == 1


async def test_closing_ends_a_call_that_was_about_to_begin(asking: Asking) -> None:
    task = asking.ask()
    closing = asyncio.create_task(asking.gateway.aclose())
    await asyncio.wait([task, closing], timeout=5)
    assert task.done()
    assert getattr(task.exception(), "code", None) == "SERVER_SHUTTING_DOWN"
    assert asking.inner.calls == []


async def test_those_who_share_an_answer_do_not_share_its_value(asking: Asking) -> None:
    tasks = [asking.ask() for _ in range(3)]
    (await asking.inner.call(1)).finish(replace(answer("{}"), value={"a": []}))
    values = [completion(events).value for events in await asyncio.gather(*tasks)]
    for value in values:
        assert value == {"a": []}
        value["a"].append(1)


async def test_a_failure_is_remembered_past_an_old_answer_that_was_not_wanted() -> None:
    class Late(ResponseCache):
        """Has an answer on the disk, but only after the first look."""

        looks = 0

        async def get(self, _key: str) -> StoredAnswer | None:
            self.looks += 1
            await settle()
            return None if self.looks == 1 else StoredAnswer(encode_answer(answer("old")), 0.0)

    asking = Asking()
    cache = Late(MemoryTier(0), [], ttl=60, clock=lambda: 0.0)
    asking.gateway = CachingModelGateway(asking.inner, cache, asking.answerer)
    async with asyncio.timeout(10):
        tasks = [asking.ask(), asking.ask(), asking.ask(question(mode=REFRESH))]
        call = await asking.inner.call(1)
        call.write("abc")
        await settle()
        call.fail(UnavailableError("cut"))
        call = await asking.inner.call(2)
        call.write("new")
        call.finish(answer("new"))
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["cut"] * 3
        await asking.gateway.aclose()
