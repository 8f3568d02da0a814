"""The answers of every provider, cut at every byte: each is whole, or known to be cut off.

`PERIPETY_WHOLE_MATRIX=1` cuts them at every byte on real connections, too.
"""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import closing
from peripety.errors import UnavailableError
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.http_provider import HttpProvider
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.registry import WIRES, ProviderRegistry, endpoint_of
from peripety.gateway.providers.stream_framing import NdjsonDecoder, SseDecoder, StreamFraming
from peripety.gateway.types.message import ChatMessage, Reasoning, Text, Tool, ToolCall
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import ReasoningDelta, TextDelta, ToolCallDelta
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.fake_server import upstream
from support.gateway.providers import PROVIDERS, config_of
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.gateway.providers.provider import Endpoint, ProviderCall, ProviderEvent
    from peripety.gateway.providers.wire_protocol import WireProtocol
    from peripety.gateway.types.message import Part
    from support.gateway.fake_server import Reply, Request
    from support.gateway.providers import Spoken
    from support.llmsim.simulator import Served


ANSWER: dict[str, Any] = {
    "reasoning": "hm é",
    "text": "one € two\n\n😀 three",
    "tool_calls": [{"tool": "look", "input": {"at": "é\n1"}}, {"tool": "look", "input": {"at": "b"}}],
}
LOOK = Tool("look", "Looks.", {"type": "object"})
QUESTION = GenerateRequest("s", (ChatMessage.user("u"),), tools=(LOOK,))
STEP = 1 if "PERIPETY_WHOLE_MATRIX" in os.environ else 89


@dataclass(frozen=True)
class Recorded:
    """A call, and what a provider sent in answer to it."""

    wire: WireProtocol
    endpoint: Endpoint
    call: ProviderCall
    data: bytes

    def said(self, data: bytes) -> tuple[list[ProviderEvent], bool]:
        """Return the events in some bytes of the answer, and whether it is complete then."""
        reading = Reading(self)
        return reading.feed(data), reading.answer.complete


class Reading:
    """One reading of an answer."""

    def __init__(self, recorded: Recorded) -> None:
        wire, call = recorded.wire, recorded.call
        failures = ErrorMapper(recorded.endpoint, call.model, wire.vocabulary)
        self.answer = wire.answer(call, wire.body(call), failures)
        self._decoder = SseDecoder() if wire.framing is StreamFraming.EVENTS else NdjsonDecoder()

    def feed(self, data: bytes) -> list[ProviderEvent]:
        events = self._decoder.feed(data)
        told = [event if isinstance(event, str) else event.data for event in events]
        return [delta for each in told for delta in self.answer.feed(each)]


@pytest.fixture(scope="module")
def simulator() -> Iterator[Served]:
    with served(ScriptBuilder().respond_to_any(ANSWER).build()) as simulator:
        yield simulator


@pytest.fixture(scope="module", params=PROVIDERS, ids=str)
def recorded(simulator: Served, request: pytest.FixtureRequest) -> Recorded:
    spoken: Spoken = request.param
    config = config_of(spoken, simulator.url)
    wire, endpoint = WIRES[spoken.name], endpoint_of(spoken.name, config)
    _, call = ProviderRegistry(config).select(QUESTION)
    asked = urllib.request.Request(  # noqa: S310 - it is the scripted LLM
        endpoint.base_url + wire.path(call),
        json.dumps(wire.body(call).document).encode(),
        {"Content-Type": "application/json", **wire.headers(call, endpoint.key)},
    )
    with urllib.request.urlopen(asked) as answer:  # noqa: S310
        return Recorded(wire, endpoint, call, answer.read())


def in_words(events: Iterable[ProviderEvent | Part]) -> tuple[str, str, str]:
    """Return the text, the reasoning, and the calls of deltas or parts."""
    said = {"text": "", "reasoning": "", "calls": ""}
    for event in events:
        match event:
            case Text() | TextDelta():
                said["text"] += event.text
            case Reasoning() | ReasoningDelta():
                said["reasoning"] += event.text
            case ToolCall():
                said["calls"] += f"{event.name}{event.arguments}"
            case ToolCallDelta():
                said["calls"] += f"{event.name}{event.arguments_text}"
    return said["text"], said["reasoning"], said["calls"]


def test_an_answer_is_whole_from_one_byte_on_and_known_to_be_cut_off_before(recorded: Recorded) -> None:
    whole_reading = Reading(recorded)
    whole = in_words(whole_reading.feed(recorded.data))
    parts = whole_reading.answer.finish().parts
    assert whole[0] == ANSWER["text"]
    assert whole == in_words(parts)

    reading = Reading(recorded)
    told: list[ProviderEvent] = []
    for place in range(len(recorded.data)):
        told += reading.feed(recorded.data[place : place + 1])
        if reading.answer.complete:
            break
        assert all(all_.startswith(some) for all_, some in zip(whole, in_words(told), strict=True))
        with pytest.raises(UnavailableError) as caught:
            reading.answer.finish()
        assert caught.value.code == "STREAM_TRUNCATED"
    assert in_words(told) == whole
    assert in_words(reading.answer.finish().parts) == whole


@pytest.mark.parametrize("properly", [True, False], ids=["the body ends", "the connection ends"])
async def test_a_connection_that_ends_at_any_byte_ends_in_the_answer_or_in_its_error(
    recorded: Recorded,
    *,
    properly: bool,
) -> None:
    sent = b""

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start(Content_Type=recorded.wire.framing.value)
        if sent:
            await reply.send(sent)
        if properly:
            await reply.end()
        else:
            reply.half_close()
            await reply.left()

    async with upstream(answer) as server:
        endpoint = replace(recorded.endpoint, base_url=server.base_url)
        provider = HttpProvider(endpoint, recorded.wire)
        try:
            for place in range(0, len(recorded.data), STEP):
                sent = recorded.data[:place]
                expected, complete = recorded.said(sent)
                events, error = await asked(provider, recorded.call)
                ends = [event for event in events if isinstance(event, AnswerFinished)]
                deltas = [event for event in events if not isinstance(event, AnswerFinished)]
                assert in_words(deltas) == in_words(expected)
                assert [in_words(end.parts) for end in ends] == ([in_words(expected)] if complete else [])
                assert complete or (error is not None and error.code == "STREAM_TRUNCATED")
        finally:
            await provider.aclose()


async def asked(
    provider: HttpProvider,
    call: ProviderCall,
) -> tuple[list[ProviderEvent], UnavailableError | None]:
    events: list[ProviderEvent] = []
    try:
        async with closing(provider.stream(call)) as arriving:
            async for event in arriving:
                events += [event]
    except UnavailableError as error:
        return events, error
    return events, None
