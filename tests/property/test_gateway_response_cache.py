"""Callers start, join, leave and fail in any order: one call at a time, a right answer for each."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.errors import UnavailableError
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache.caching_gateway import CachingModelGateway
from peripety.gateway.response_cache.tiers import MemoryTier, ResponseCache
from peripety.gateway.types.request import ResponseCacheMode
from peripety.gateway.types.response import Completed, Completion, StopReason, TextDelta, Usage
from support.gateway.fake_gateway import Call, GatedGateway, answer, question

if TYPE_CHECKING:
    from peripety.gateway.types.request import GenerateRequest


QUESTIONS = ("a", "b")
STABLE = "0123456789"
MODES = (ResponseCacheMode.USE, ResponseCacheMode.USE, ResponseCacheMode.REFRESH)


@dataclass
class Caller:
    """A caller, and its answer."""

    text: str
    mode: ResponseCacheMode
    given: list[str] = field(default_factory=list)
    completion: Completion | None = None
    failure: UnavailableError | None = None
    left: bool = False


class Story:
    """A random sequence of steps.

    Args:
        chance: decides.
        stable: whether the model always answers the same.
    """

    def __init__(self, chance: Random, *, stable: bool) -> None:
        self.chance = chance
        self.stable = stable
        self.inner = GatedGateway()
        memory = MemoryTier(chance.choice((0, 10_000)))
        cache = ResponseCache(memory, [], ttl=60, clock=lambda: 0.0)
        self.gateway = CachingModelGateway(self.inner, cache, lambda _: AnswerSource("p", "m", "a"))
        self.callers: list[Caller] = []
        self.tasks: dict[asyncio.Task[None], Caller] = {}
        self.written: dict[Call, str] = {}
        self.ended: set[Call] = set()
        self.answers: list[tuple[str, str, StopReason]] = []

    async def play(self, steps: int) -> None:
        for _ in range(steps):
            self.chance.choice((self._ask, self._ask, self._leave, self._write, self._write, self._end))()
            for _ in range(self.chance.choice((0, 1, 2, 20))):
                await asyncio.sleep(0)
        while not all(task.done() for task in self.tasks):
            self._end()
            await asyncio.sleep(0)
        await self.gateway.aclose()

    def _ask(self) -> None:
        caller = Caller(self.chance.choice(QUESTIONS), self.chance.choice(MODES))
        self.callers.append(caller)
        self.tasks[asyncio.create_task(self._follow(caller, question(caller.text, caller.mode)))] = caller

    async def _follow(self, caller: Caller, request: GenerateRequest) -> None:
        try:
            async for event in self.gateway.stream(request):
                if isinstance(event, TextDelta):
                    caller.given.append(event.text)
                elif isinstance(event, Completed):
                    caller.completion = event.completion
        except UnavailableError as error:
            caller.failure = error

    def _leave(self) -> None:
        waiting = [task for task in self.tasks if not task.done()]
        if waiting:
            task = self.chance.choice(waiting)
            task.cancel()
            self.tasks[task].left = True

    def _call(self) -> Call | None:
        calls = [call for call in self.inner.open if call not in self.ended]
        return self.chance.choice(calls) if calls else None

    def _write(self) -> None:
        call = self._call()
        if call is None:
            return
        before = self.written.get(call, "")
        piece = STABLE[len(before) : len(before) + 2] if self.stable else self.chance.choice("xy")
        if piece:
            self._write_to(call, piece)

    def _write_to(self, call: Call, piece: str) -> None:
        self.written[call] = self.written.get(call, "") + piece
        call.write(piece)

    def _end(self) -> None:
        call = self._call()
        if call is None:
            return
        self.ended.add(call)
        if self.chance.random() < 0.4:
            call.fail(UnavailableError("the provider is down"))
            return
        if self.stable:
            self._write_to(call, STABLE[len(self.written.get(call, "")) :])
        reason = self.chance.choice((StopReason.END, StopReason.END, StopReason.LENGTH))
        completion = answer(self.written.get(call, ""), reason)
        self.answers.append((call.request.messages[0].text, completion.text, reason))
        call.finish(completion)


async def _told(seed: int, *, stable: bool) -> Story:
    story = Story(Random(seed), stable=stable)
    async with asyncio.timeout(30):
        await story.play(60)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return story


@pytest.mark.slow(reason="plays many orders of events")
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_any_order_of_events_keeps_the_promises(seed: int, stable: bool) -> None:
    story = asyncio.run(_told(seed, stable=stable))
    assert not story.inner.open
    assert story.inner.most_at_once <= 1
    calls = 0
    failed = [caller for caller in story.callers if caller.failure is not None]
    assert all(caller.left or caller.completion or caller.failure for caller in story.callers)
    for caller in story.callers:
        given = caller.completion
        if given is None:
            continue
        assert "".join(caller.given) == given.text
        assert (caller.text, given.text, given.stop_reason) in story.answers
        if given.from_response_cache:
            assert (given.usage, given.calls) == (Usage(), 0)
        calls += given.calls
    # Each call is accounted for at most once, and only its leader may lose the answer.
    assert calls <= len(story.answers)
    assert not stable or len(failed) <= len(story.ended) - len(story.answers)
