"""Fake model gateways and providers: scripts, gates, failures."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.core.config import Config
from peripety.errors import PeripetyError
from peripety.gateway.budgets.order_budget import with_time_limit
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.structured_output.validator import generate_valid
from peripety.gateway.types.message import ChatMessage, ChatRole, Text, ToolCall
from peripety.gateway.types.request import GenerateRequest, ResponseCacheMode
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageTotal,
    collect_completion,
)
from support.gateway.requests import call_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from peripety.gateway.providers.provider import Provider, ProviderCall, ProviderEvent
    from peripety.gateway.types.message import Part
    from peripety.gateway.types.response import GatewayEvent


COST = Usage(7, 3, 2, 1)
SILENCE = "(silence)"
"""A piece of an answer after which nothing comes."""
TOKENS = Usage(input_tokens=7, output_tokens=3, cache_read_tokens=4, cache_write_tokens=2)
SPENT = UsageTotal(1, TOKENS, cost=50, cache_savings=20)
"""Usage of each answer of a `FakeGateway`."""


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
    """Model gateway whose calls wait for the test. Use it for tests about the order of calls.

    It counts how many calls of one question are under way at a time.
    """

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


Answer: TypeAlias = "str | Mapping[str, Any] | list[Any] | Exception | Callable[[GenerateRequest], Any]"


class FakeGateway:
    """Model gateway that answers from a script. Use it for code that takes a `ModelGateway`.

    Each request takes the next answer; the last answer is repeated. An answer is a text, the pieces of a
    text, a JSON object, an exception, a list of events that may end with an exception, or a function of the
    request that returns one of these or an async iterator of events. The piece `SILENCE` never ends. Override
    `respond` for a model with a state of its own.

    Use `GatedGateway` if the test decides when calls answer, `FakeProvider` for the code below the gateway,
    and `support.gateway.fake_server` for the code below a provider.

    Args:
        answers: the answers.
        validates: True if requests with a schema pass the real validation, repair and time limit.

    Attributes:
        requests: the requests so far, with those for a repair.
        running: number of calls that are under way.
        most_running: the largest number so far.
        silent: set when a call has become silent.
        cancelled: number of silent calls that were cancelled.
    """

    def __init__(self, *answers: Answer, validates: bool = True) -> None:
        self.answers = [*answers]
        self.validates = validates
        self.requests: list[GenerateRequest] = []
        self.running = self.most_running = self.cancelled = 0
        self.silent = asyncio.Event()

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            async with closing(self._validated(request)) as events:
                async for event in events:
                    yield event
        finally:
            self.running -= 1

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))

    def of(self, schema_name: str) -> list[GenerateRequest]:
        """The requests with one schema."""
        return [request for request in self.requests if request.schema and request.schema.name == schema_name]

    def ask(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Record a request and answer it without validation."""
        self.requests.append(request)
        return self.respond(request)

    async def respond(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        """Answer the request that was recorded last."""
        await asyncio.sleep(0)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        answer = answer(request) if callable(answer) else answer
        if isinstance(answer, AsyncIterator):
            async with closing(answer) as events:
                async for event in events:
                    yield event
            return
        for step in _to_steps(answer):
            if isinstance(step, Exception):
                raise step
            if step == SILENCE:
                await self.keep_silent()
            yield step
            await asyncio.sleep(0)

    async def keep_silent(self) -> None:
        """Wait until the call is cancelled."""
        self.silent.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def _validated(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        if request.schema is None or not self.validates:
            return self.ask(request)
        events = generate_valid(self.ask, request, request.schema)
        seconds = None if request.budget is None else request.budget.max_seconds
        return events if seconds is None else with_time_limit(seconds, events)


def _to_steps(answer: Any) -> list[Any]:
    if isinstance(answer, list):
        return saying(*answer) if any(isinstance(piece, str) for piece in answer) else answer
    if isinstance(answer, Exception):
        return [answer]
    return saying(answer if isinstance(answer, str) else json.dumps(answer))


def completion(*parts: Part, stop: StopReason = StopReason.END) -> Completion:
    """A whole answer, with the usage `SPENT`."""
    message = ChatMessage(ChatRole.ASSISTANT, parts)
    usage, cost, savings = SPENT.usage, SPENT.cost, SPENT.cache_savings
    return Completion(message, None, usage, stop, "scripted", "fake", cost=cost, cache_savings=savings)


def saying(*pieces: str, stop: StopReason = StopReason.END) -> list[Any]:
    """An answer in prose, or in JSON."""
    deltas = [piece if piece == SILENCE else TextDelta(piece) for piece in pieces]
    return [*deltas, Completed(completion(*ChatMessage.assistant("".join(pieces)).parts, stop=stop))]


def cut_off(text: str = '{"scenarios": [{"descr') -> list[Any]:
    """An answer that reaches its length limit."""
    return saying(text, stop=StopReason.LENGTH)


def echoing(request: GenerateRequest) -> list[Any]:
    """The answer `re: <last message>`."""
    return saying(f"re: {request.messages[-1].text}")


def calling(*calls: tuple[str, Any], text: str = "") -> Callable[[GenerateRequest], list[Any]]:
    """An answer that calls tools, with some text before; the ids of the calls differ from round to round."""
    return lambda request: call_events(*calls, text=text, prefix=f"c{len(request.messages)}.")


def call_events(*calls: tuple[str, Any], text: str = "", prefix: str = "c") -> list[Any]:
    """The events of an answer that calls tools; arguments that are text go out as they are."""
    made = [
        ToolCall(f"{prefix}{number}", name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(calls)
    ]
    said = [Text(text)] if text else []
    return [
        *(TextDelta(part.text) for part in said),
        *(ToolCallDelta(call.call_id, call.arguments, call.name) for call in made),
        Completed(completion(*said, *made, stop=StopReason.TOOL_USE)),
    ]


WORDS = (TextDelta("a"), TextDelta("b"))
SAID = (Text("ab"),)
END = AnswerFinished(SAID, StopReason.END, Usage(5, 2), "m-1")

ScriptedPart: TypeAlias = TextDelta | AnswerFinished | PeripetyError | float
ANSWER: tuple[ScriptedPart, ...] = (*WORDS, END)


def used(input_tokens: int, output_tokens: int) -> tuple[ScriptedPart, ...]:
    """The same answer, for which the provider reports these tokens."""
    return (*WORDS, AnswerFinished(SAID, StopReason.END, Usage(input_tokens, output_tokens), "m-1"))


class FakeProvider:
    """Provider that answers from a script. Use it for code below the gateway: retries, limits, fallbacks.

    Each call takes the next script; the last one is repeated. A number is a pause in seconds.

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


def waiting_generators() -> list[str]:
    """Return the names of the async generators above the caller, innermost first."""
    frame = inspect.currentframe()
    names = []
    while frame is not None:
        if frame.f_code.co_flags & inspect.CO_ASYNC_GENERATOR:
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names


class TracingProvider(FakeProvider):
    """Provider that records the async generators that wait for each of its pieces, itself included."""

    def __init__(self, *pieces: str) -> None:
        super().__init__((*map(TextDelta, pieces), replace(END, parts=(Text("".join(pieces)),))))
        self.paths: list[list[str]] = []

    async def stream(self, call: ProviderCall) -> AsyncIterator[ProviderEvent]:
        async for event in super().stream(call):
            if isinstance(event, TextDelta):
                self.paths.append(waiting_generators())
            yield event


class OneProvider(ProviderRegistry):
    """Has one provider for every model."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(Config())
        self._provider = provider

    def select(self, request: GenerateRequest, model: str | None = None) -> tuple[Provider, ProviderCall]:
        return self._provider, call_of(request, model or "m")
