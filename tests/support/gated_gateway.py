"""A gateway that answers when, and how, the test lets it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from peripety.core import call_context
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest, ResponseCacheMode
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    Usage,
    collect_completion,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.types.response import GatewayEvent


COST = Usage(7, 3, 2, 1)


def question(text: str = "u", mode: ResponseCacheMode = ResponseCacheMode.USE) -> GenerateRequest:
    """A request that wants the cache."""
    return GenerateRequest("s", (ChatMessage.user(text),), response_cache=mode)


def answer(text: str, stop_reason: StopReason = StopReason.END) -> Completion:
    """What a model answers."""
    return Completion(ChatMessage.assistant(text), None, COST, stop_reason, "m", "p")


class Call:
    """A call that is under way; the test says what comes of it."""

    def __init__(self, request: GenerateRequest) -> None:
        self.request = request
        self.remaining = call_context.remaining()
        self.closing = asyncio.Event()
        self.closed = self.closed_in_peace = False
        self._steps: asyncio.Queue[GatewayEvent | Exception] = asyncio.Queue()

    def asks(self, text: str) -> bool:
        return self.request.messages[0].text == text

    def write(self, text: str) -> None:
        self._steps.put_nowait(TextDelta(text))

    def send(self, event: GatewayEvent) -> None:
        self._steps.put_nowait(event)

    def finish(self, completion: Completion) -> None:
        self._steps.put_nowait(Completed(completion))

    def fail(self, error: Exception) -> None:
        self._steps.put_nowait(error)

    async def events(self) -> AsyncIterator[GatewayEvent]:
        while True:
            step = await self._steps.get()
            if isinstance(step, Exception):
                raise step
            yield step
            if isinstance(step, Completed):
                return


class GatedGateway:
    """Every call waits for the test; how many there are of one question at a time is counted."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.most_at_once = 0
        self._under_way: Counter[tuple[ChatMessage, ...]] = Counter()
        self._called = asyncio.Condition()

    @property
    def open(self) -> list[Call]:
        """The calls that are under way."""
        return [call for call in self.calls if not call.closed]

    async def call(self, number: int) -> Call:
        """Wait for a call, counted from 1."""
        async with self._called:
            await self._called.wait_for(lambda: len(self.calls) >= number)
        return self.calls[number - 1]

    async def call_about(self, text: str) -> Call:
        """Wait for a call with this question that is under way."""
        async with self._called:
            await self._called.wait_for(lambda: any(call.asks(text) for call in self.open))
        return next(call for call in self.open if call.asks(text))

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        call = Call(request)
        self._under_way[request.messages] += 1
        self.most_at_once = max(self.most_at_once, *self._under_way.values())
        self.calls.append(call)
        try:
            async with self._called:
                self._called.notify_all()
            async for event in call.events():
                yield event
        finally:
            try:
                call.closing.set()
                for _ in range(3):  # closing a connection takes its time
                    await asyncio.sleep(0)
                call.closed_in_peace = True
            finally:
                call.closed = True
                self._under_way[request.messages] -= 1

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))
