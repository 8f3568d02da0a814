"""The OpenAI provider against a real HTTP server that behaves, or does not."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from peripety.errors import PeripetyError, UnavailableError
from peripety.gateway.providers import http_transport
from peripety.gateway.providers.http_provider import HttpProvider
from peripety.gateway.providers.http_transport import StreamTimeouts
from peripety.gateway.providers.openai.dialect import GENERIC
from peripety.gateway.providers.openai.response_stream import ChatCompletionsWire
from peripety.gateway.providers.provider import AnswerFinished, Endpoint
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import TextDelta
from support.gateway.fake_server import DONE, Reply, Request, answering, delta, finish, upstream, usage
from support.gateway.requests import call_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


KEY = "sk-canary-1234567890"
QUESTION = GenerateRequest("s", (ChatMessage.user("u"),))
PATIENT = StreamTimeouts()
HASTY = StreamTimeouts(first_event=1.0, between_chunks=1.0)


class Asking:
    """A provider for one test."""

    def __init__(self, base_url: str, timeouts: StreamTimeouts = PATIENT) -> None:
        endpoint = Endpoint("generic", base_url, SecretStr(KEY), "m")
        self.provider = HttpProvider(endpoint, ChatCompletionsWire(GENERIC), timeouts)

    async def __aenter__(self) -> AsyncIterator[Any]:
        return self.provider.stream(call_of(QUESTION))

    async def __aexit__(self, *_: object) -> None:
        await self.provider.aclose()


async def ask(base_url: str, timeouts: StreamTimeouts = PATIENT) -> tuple[str, AnswerFinished]:
    async with Asking(base_url, timeouts) as events:
        *texts, end = [event async for event in events]
    assert isinstance(end, AnswerFinished)
    assert all(isinstance(text, TextDelta) for text in texts)
    return "".join(text.text for text in texts if isinstance(text, TextDelta)), end


async def failure(base_url: str, timeouts: StreamTimeouts = PATIENT) -> PeripetyError:
    with pytest.raises(PeripetyError) as caught:
        await ask(base_url, timeouts)
    return caught.value


async def test_a_request_carries_the_key_in_its_header_and_nowhere_else() -> None:
    async with upstream(answering("a")) as server:
        await ask(server.base_url)
    request = server.requests[0]
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in request.line
    assert KEY.encode() not in request.raw


async def test_an_answer_is_the_same_whatever_the_network_makes_of_it() -> None:
    whole = delta("aé") + delta("😀\u2028b") + finish() + usage(7, 3, 2) + DONE

    async def answer(request: Request, reply: Reply) -> None:
        size = len(server.requests)
        await reply.start()
        for start in range(0, len(whole), size):
            await reply.send(whole[start : start + size])
        await reply.end()

    async with upstream(answer) as server:
        for _ in range(12):
            text, end = await ask(server.base_url)
            assert text == "aé😀\u2028b"
            assert end.usage.cache_read_tokens == 2


async def test_text_that_arrives_together_is_handed_on_together() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.stream(delta("a") + delta("b") + delta("c") + finish() + DONE)

    async with upstream(answer) as server, Asking(server.base_url) as events:
        assert [event.text async for event in events if isinstance(event, TextDelta)] == ["abc"]


async def test_nobody_waits_for_a_server_that_holds_its_connection_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_transport, "_DRAIN_SECONDS", 0.02)
    gone = asyncio.Event()

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta("a") + finish() + DONE)
        await reply.left()
        gone.set()

    async with asyncio.timeout(30), upstream(answer) as server:
        text, _ = await ask(server.base_url)
        await gone.wait()
    assert text == "a"


async def test_a_connection_that_the_server_closed_in_between_costs_nothing() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        if len(server.requests) == 2:
            reply.cut()
        else:
            await reply.stream(delta("a"), finish(), DONE)

    async with upstream(answer) as server:
        provider = HttpProvider(Endpoint("generic", server.base_url), ChatCompletionsWire(GENERIC))
        for _ in range(2):
            assert TextDelta("a") in [item async for item in provider.stream(call_of(QUESTION))]
        await provider.aclose()
        assert server.connections == 2


async def test_what_fails_on_a_kept_and_on_a_new_connection_is_not_asked_a_third_time() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        if len(server.requests) == 1:
            await reply.stream(delta("a"), finish(), DONE)
        else:
            reply.cut()

    async with upstream(answer) as server:
        provider = HttpProvider(Endpoint("generic", server.base_url), ChatCompletionsWire(GENERIC))
        assert TextDelta("a") in [item async for item in provider.stream(call_of(QUESTION))]
        with pytest.raises(UnavailableError):
            assert [item async for item in provider.stream(call_of(QUESTION))]
        await provider.aclose()
    assert (len(server.requests), server.connections) == (3, 2)


async def test_a_connection_that_dies_after_the_end_costs_only_the_usage() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta("a") + finish())
        await asyncio.sleep(0.05)
        reply.cut()

    async with upstream(answer) as server:
        text, end = await ask(server.base_url)
    assert (text, end.usage.output_tokens) == ("a", 0)


async def test_a_slow_answer_that_keeps_coming_is_not_given_up() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        for _ in range(12):
            await reply.send(delta("a"))
            await asyncio.sleep(0.1)
        await reply.send(finish() + DONE)
        await reply.end()

    async with upstream(answer) as server:
        assert (await ask(server.base_url, HASTY))[0] == "a" * 12


async def test_the_key_shows_nowhere_when_everything_goes_wrong(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: Request, reply: Reply) -> None:
        status = (400, 401, 404, 429, 500)[len(server.requests) - 1]
        await reply.refuse(status, {"error": {"message": f"you sent {request.headers['authorization']}"}})

    seen = []
    caplog.set_level(logging.DEBUG)
    async with upstream(answer) as server:
        for _ in range(5):
            error = await failure(server.base_url)
            seen += [
                repr(error),
                error.message,
                str(error.details),
                repr(error.__cause__),
                repr(error.__context__),
            ]
    assert KEY not in "".join([*seen, caplog.text, repr(vars(Asking("http://127.0.0.1:1").provider))])
