"""The OpenAI provider against a real HTTP server that behaves, or does not."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.errors import DeadlineError, FailedPreconditionError, PeripetyError, UnavailableError
from peripety.gateway.providers import http_transport
from peripety.gateway.providers.http_provider import HttpProvider
from peripety.gateway.providers.http_transport import StreamTimeouts
from peripety.gateway.providers.openai.dialect import GENERIC
from peripety.gateway.providers.openai.response_stream import ChatCompletionsWire
from peripety.gateway.providers.provider import AnswerFinished, Endpoint
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import TextDelta
from support.gateway.fake_server import DONE, Reply, Request, answering, delta, event, finish, upstream, usage
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


async def test_each_token_is_handed_on_before_the_next_one_is_sent() -> None:
    seen = asyncio.Semaphore(0)

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        for token in "abcde":
            await reply.send(delta(token))
            await seen.acquire()
        await reply.send(finish() + DONE)
        await reply.end()

    received = []
    async with asyncio.timeout(30), upstream(answer) as server, Asking(server.base_url) as events:
        async for item in events:
            if isinstance(item, TextDelta):
                received.append(item.text)
                seen.release()
    assert received == list("abcde")


async def test_leaving_early_closes_the_connection_to_the_provider() -> None:
    gone = asyncio.Event()

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta("a"))
        await reply.left()
        gone.set()

    async with asyncio.timeout(30), upstream(answer) as server, Asking(server.base_url) as events:
        async with closing(events):
            await anext(events)
        await gone.wait()


async def test_being_cancelled_closes_the_connection_to_the_provider() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def answer(_request: Request, reply: Reply) -> None:
        asked.set()
        await reply.left()
        gone.set()

    async with asyncio.timeout(30), upstream(answer) as server:
        task = asyncio.create_task(ask(server.base_url))
        await asked.wait()
        task.cancel()
        await gone.wait()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_connection_serves_one_answer_after_the_other() -> None:
    async with upstream(answering("a")) as server:
        provider = HttpProvider(Endpoint("generic", server.base_url), ChatCompletionsWire(GENERIC))
        for _ in range(3):
            assert TextDelta("a") in [item async for item in provider.stream(call_of(QUESTION))]
        await provider.aclose()
        assert (len(server.requests), server.connections) == (3, 1)


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


async def test_a_server_that_hangs_up_on_a_new_connection_is_unavailable_and_asked_once() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        reply.cut()

    async with upstream(answer) as server:
        error = await failure(server.base_url)
    assert (type(error), error.code) == (UnavailableError, "PROVIDER_UNREACHABLE")
    assert len(server.requests) == 1


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


@pytest.mark.parametrize("whole", [[], [delta("a")], [delta("a"), delta("b")[:20]]])
async def test_a_stream_that_ends_too_early_is_never_a_success(whole: list[bytes]) -> None:
    async def end(_request: Request, reply: Reply) -> None:
        await reply.stream(*whole)

    async def cut(_request: Request, reply: Reply) -> None:
        await reply.start()
        for data in whole:
            await reply.send(data)
        reply.cut()

    for answer in (end, cut):
        async with upstream(answer) as server:
            assert (await failure(server.base_url)).code in {"STREAM_TRUNCATED", "PROVIDER_UNREACHABLE"}


async def test_a_cut_at_any_byte_loses_nothing_and_doubles_nothing() -> None:
    whole = delta("ab") + delta("cd") + finish() + DONE
    end_is_known = len(delta("ab") + delta("cd") + finish())

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(whole[: len(server.requests)])
        await reply.end()

    async with upstream(answer) as server:
        provider = HttpProvider(Endpoint("generic", server.base_url), ChatCompletionsWire(GENERIC))
        for length in range(1, len(whole) + 1):
            text = ""
            try:
                async for item in provider.stream(call_of(QUESTION)):
                    text += item.text if isinstance(item, TextDelta) else ""
                complete = True
            except UnavailableError as error:
                complete = False
                assert error.code == "STREAM_TRUNCATED"  # noqa: PT017 - both outcomes are checked
            assert complete == (length >= end_is_known), length
            assert text == "abcd" if complete else "abcd".startswith(text)
        await provider.aclose()


async def test_a_connection_that_dies_after_the_end_costs_only_the_usage() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta("a") + finish())
        await asyncio.sleep(0.05)
        reply.cut()

    async with upstream(answer) as server:
        text, end = await ask(server.base_url)
    assert (text, end.usage.output_tokens) == ("a", 0)


async def test_a_server_that_says_nothing_is_given_up() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.left()

    async with upstream(answer) as server:
        error = await failure(server.base_url, HASTY)
    assert error.code == "PROVIDER_TIMEOUT"
    assert "answer not started" in error.message


async def test_comments_do_not_count_as_the_beginning_of_an_answer() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        while True:
            await reply.send(b": keep-alive\n\n")
            await asyncio.sleep(0.05)

    async with upstream(answer) as server:
        assert "answer not started" in (await failure(server.base_url, HASTY)).message


async def test_a_server_that_stops_in_the_middle_is_given_up() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta("a"))
        await reply.left()

    async with upstream(answer) as server:
        error = await failure(server.base_url, HASTY)
    assert error.code == "PROVIDER_TIMEOUT"
    assert "paused" in error.message


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


async def test_the_callers_deadline_is_nearer_than_every_other_limit() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.left()

    async with upstream(answer) as server:
        call_context.begin_call(request_id=None, timeout=0.1)
        error = await failure(server.base_url)
    assert isinstance(error, DeadlineError)


async def test_a_port_nobody_listens_on_is_unreachable() -> None:
    async with upstream(answering("a")) as server:
        base_url = server.base_url
    error = await failure(base_url)
    assert (type(error), error.code) == (UnavailableError, "PROVIDER_UNREACHABLE")


async def test_a_redirect_is_not_followed() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(307, {}, Location=f"{server.base_url}/elsewhere")

    async with upstream(answer) as server:
        assert (await failure(server.base_url)).code == "PROVIDER_REDIRECTS"
    assert len(server.requests) == 1


async def test_an_answer_that_is_no_stream_says_so() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(200, {"choices": []})

    async with upstream(answer) as server:
        error = await failure(server.base_url)
    assert isinstance(error, FailedPreconditionError)
    assert "application/json" in error.message


async def test_a_rate_limit_says_when_to_come_back() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(429, {"error": {"message": "slow down"}}, Retry_After="7")

    async with upstream(answer) as server:
        assert (await failure(server.base_url)).retry_after == 7


async def test_an_error_in_the_middle_of_the_stream_is_an_error() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.stream(
            delta("a"),
            event({"error": {"message": "out of memory", "code": 500}}),
            finish(),
            DONE,
        )

    async with upstream(answer) as server:
        assert "out of memory" in (await failure(server.base_url)).message


async def test_a_server_on_this_machine_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with upstream(answering("a")) as server:
        assert (await ask(server.base_url))[0] == "a"


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
