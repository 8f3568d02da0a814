"""Scripted model gateways and providers: replies, gates, failures."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from peripety.core import call_context
from peripety.core.config import Config
from peripety.errors import PeripetyError
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.message import ChatMessage, ChatRole, Text, ToolCall
from peripety.gateway.types.request import GenerateRequest, ResponseCacheMode
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    collect_completion,
)
from support.gateway.requests import call_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from peripety.gateway.providers.provider import Provider, ProviderCall, ProviderEvent
    from peripety.gateway.types.message import Part
    from peripety.gateway.types.response import GatewayEvent


COST = Usage(7, 3, 2, 1)


def question(text: str = "u", mode: ResponseCacheMode = ResponseCacheMode.USE) -> GenerateRequest:
    """A request that wants the cache."""
    return GenerateRequest("s", (ChatMessage.user(text),), response_cache=mode)


def answer(text: str, stop_reason: StopReason = StopReason.END) -> Completion:
    """Return the answer of a model."""
    return Completion(ChatMessage.assistant(text), None, COST, stop_reason, "m", "p")


class Call:
    """A call that is under way; the test decides its result."""

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


Script: TypeAlias = "list[GatewayEvent | Exception]"


class FakeGateway:
    """Plays one script for each request, the last one again and again; a function makes one of the request.

    Attributes:
        scripts: the scripts that are left.
        requests: the requests so far.
    """

    def __init__(self, *scripts: Script | Callable[[GenerateRequest], Script]) -> None:
        self.scripts = [*scripts]
        self.requests: list[GenerateRequest] = []

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        self.requests.append(request)
        for event in script if isinstance(script, list) else script(request):
            if isinstance(event, Exception):
                raise event
            yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))


def completion(*parts: Part, stop: StopReason = StopReason.END) -> Completion:
    """A whole answer."""
    return Completion(ChatMessage(ChatRole.ASSISTANT, parts), None, Usage(10, 5), stop, "m", "p")


def saying(*pieces: str) -> Script:
    """An answer in prose, or in JSON."""
    return [*map(TextDelta, pieces), Completed(completion(Text("".join(pieces))))]


def echoing(request: GenerateRequest) -> Script:
    """The answer `re: <last message>`."""
    return saying(f"re: {request.messages[-1].text}")


def calling(*calls: tuple[str, str]) -> Script:
    """An answer that calls tools: their names, and their arguments as JSON."""
    made = [ToolCall(f"c{number}", *call) for number, call in enumerate(calls)]
    deltas = [ToolCallDelta(call.call_id, call.arguments, call.name) for call in made]
    return [*deltas, Completed(completion(*made, stop=StopReason.TOOL_USE))]


WORDS = (TextDelta("a"), TextDelta("b"))
SAID = (Text("ab"),)
END = AnswerFinished(SAID, StopReason.END, Usage(5, 2), "m-1")

ScriptedPart: TypeAlias = TextDelta | AnswerFinished | PeripetyError | float
ANSWER: tuple[ScriptedPart, ...] = (*WORDS, END)


def used(input_tokens: int, output_tokens: int) -> tuple[ScriptedPart, ...]:
    """The same answer, for which the provider reports these tokens."""
    return (*WORDS, AnswerFinished(SAID, StopReason.END, Usage(input_tokens, output_tokens), "m-1"))


class ScriptedProvider:
    """Plays one script after the other, the last one again and again; a number is a pause.

    Attributes:
        calls: those that were made.
    """

    model = "m"
    account = ""

    def __init__(self, *scripts: tuple[ScriptedPart, ...], name: str = "generic") -> None:
        self.name = name
        self.scripts = list(scripts)
        self.calls: list[ProviderCall] = []

    @property
    def requests(self) -> int:
        return len(self.calls)

    async def stream(self, call: ProviderCall) -> AsyncIterator[ProviderEvent]:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        self.calls.append(call)
        for part in script:
            if isinstance(part, PeripetyError):
                raise part
            if isinstance(part, float):
                await asyncio.sleep(part)
            else:
                yield part

    async def count_tokens(self, _call: ProviderCall) -> int | None:
        return None

    async def aclose(self) -> None:
        pass


class OneProvider(ProviderRegistry):
    """Has one provider for every model."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(Config())
        self._provider = provider

    def select(self, request: GenerateRequest, model: str | None = None) -> tuple[Provider, ProviderCall]:
        return self._provider, call_of(request, model or "m")
