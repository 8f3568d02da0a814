"""The transport of the providers against a real server that behaves, or does not."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.errors import DeadlineError, FailedPreconditionError, PeripetyError, UnavailableError
from peripety.gateway.providers.http_transport import HttpTransport, StreamTimeouts
from support.gateway.fake_server import Reply, Request, upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping


KEY = "sk-canary-1234567890"
HEADERS = {"Authorization": f"Bearer {KEY}"}
PATIENT = StreamTimeouts()
NDJSON = "application/x-ndjson"


def refuse(status: int, headers: Mapping[str, str], body: bytes) -> PeripetyError:
    return UnavailableError(f"{status} {headers.get('X-Reason', '')} {len(body)}", code="REFUSED")


@asynccontextmanager
async def transport(timeouts: StreamTimeouts = PATIENT) -> AsyncIterator[HttpTransport]:
    made = HttpTransport("test", timeouts)
    try:
        yield made
    finally:
        await made.aclose()


async def read_events(asked: HttpTransport, url: str) -> list[str]:
    arrivals = asked.stream_events(url, {"q": 1}, HEADERS, refuse)
    return [event.data async for events in arrivals for event in events]


async def read_lines(asked: HttpTransport, url: str) -> list[str]:
    arrivals = asked.stream_lines(url, {"q": 1}, HEADERS, refuse)
    return [line async for lines in arrivals for line in lines]


async def read_document(asked: HttpTransport, url: str) -> Any:
    return await asked.fetch_json("GET", url, HEADERS, refuse)


WAYS = {"events": read_events, "lines": read_lines, "document": read_document}
each_way = pytest.mark.parametrize("read", WAYS.values(), ids=WAYS.keys())
Read: TypeAlias = "Callable[[HttpTransport, str], Coroutine[Any, Any, Any]]"
KINDS = {"events": "text/event-stream", "lines": NDJSON, "document": "application/json"}


def kind_of(request: Request) -> str:
    """Return the kind of answer that the client requests."""
    return request.headers["accept"]


async def failure(read: Read, url: str, timeouts: StreamTimeouts = PATIENT) -> PeripetyError:
    async with transport(timeouts) as asked:
        with pytest.raises(PeripetyError) as caught:
            await read(asked, url)
    assert KEY not in f"{caught.value!r} {caught.value.message} {caught.value.details}"
    assert caught.value.__cause__ is None
    return caught.value


async def serve_ones(request: Request, reply: Reply) -> None:
    """Answer in the requested framing."""
    kind = kind_of(request)
    await reply.start(Content_Type=kind)
    await reply.send(b'data: {"a": 1}\n\n' if kind == KINDS["events"] else b'{"a": 1}\n')
    await reply.end()


# ---- requests


async def test_a_request_has_its_body_its_key_and_nothing_that_was_not_asked_for() -> None:
    async with upstream(serve_ones) as server, transport() as asked:
        for read in WAYS.values():
            await read(asked, server.base_url)
        events, _, document = server.requests
    assert events.line == "POST /v1 HTTP/1.1"
    assert events.body == {"q": 1}
    assert events.headers["content-type"] == "application/json"
    assert document.line == "GET /v1 HTTP/1.1"
    assert document.raw == b""
    assert not {"content-length", "content-type"} & set(document.headers)
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["accept-encoding"] == "identity"
        assert request.headers["user-agent"].startswith("peripety/")
    assert [kind_of(request) for request in server.requests] == list(KINDS.values())


async def test_a_document_can_be_asked_for_with_a_body() -> None:
    async with upstream(serve_ones) as server, transport() as asked:
        assert await asked.fetch_json("POST", server.base_url, {}, refuse, body={"b": "é"}) == {"a": 1}
        assert server.requests[0].line == "POST /v1 HTTP/1.1"
        assert server.requests[0].body == {"b": "é"}


async def test_a_cookie_is_not_kept() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(200, {}, Set_Cookie="a=b; Path=/")

    async with upstream(answer) as server, transport() as asked:
        for _ in range(2):
            await read_document(asked, server.base_url)
        assert "cookie" not in server.requests[1].headers


# ---- what is answered


async def test_lines_are_handed_on_as_they_arrive() -> None:
    seen = asyncio.Semaphore(0)

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start(Content_Type=f"{NDJSON}; charset=utf-8")
        for number in range(3):
            await reply.send(json.dumps({"n": number}).encode() + b"\n")
            await seen.acquire()
        await reply.end()

    async with asyncio.timeout(30), upstream(answer) as server, transport() as asked:
        numbers = []
        async for lines in asked.stream_lines(server.base_url, {}, {}, refuse):
            numbers += [json.loads(line)["n"] for line in lines]
            seen.release()
    assert numbers == [0, 1, 2]


async def test_a_document_may_be_preceded_by_blank_lines() -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start(Content_Type="application/json")
        for piece in (b"\n", b"\n\r\n", b'{"a"', b": [1]}"):
            await reply.send(piece)
        await reply.end()

    async with upstream(answer) as server, transport() as asked:
        assert await read_document(asked, server.base_url) == {"a": [1]}


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a": '])
async def test_a_document_that_is_not_json_is_an_error(body: bytes) -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(200, body)

    async with upstream(answer) as server:
        assert (await failure(read_document, server.base_url)).code == "STREAM_MALFORMED"


@each_way
async def test_an_answer_without_end_cannot_fill_the_memory(read: Read) -> None:
    async def answer(request: Request, reply: Reply) -> None:
        await reply.start(Content_Type=kind_of(request))
        while True:
            await reply.send(b"1" * 1_000_000)

    async with upstream(answer) as server:
        assert (await failure(read, server.base_url)).code == "STREAM_MALFORMED"


@pytest.mark.parametrize("read", [read_events, read_lines])
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
async def test_an_answer_in_another_framing_says_what_it_is(read: Read, kind: str) -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start(Content_Type=kind)
        await reply.end()

    async with upstream(answer) as server:
        error = await failure(read, server.base_url)
    assert isinstance(error, FailedPreconditionError)
    assert kind in error.message


@each_way
async def test_a_refusal_is_explained_by_the_provider(read: Read) -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(503, {"a": 1}, X_Reason="busy")

    async with upstream(answer) as server:
        assert (await failure(read, server.base_url)).message == "503 busy 8"


@each_way
async def test_of_a_refusal_a_beginning_is_read_and_what_breaks_off_is_left(read: Read) -> None:
    async def endless(_request: Request, reply: Reply) -> None:
        await reply.start(500)
        while True:
            await reply.send(b"x" * 50_000)

    async def cut(_request: Request, reply: Reply) -> None:
        await reply.start(500)
        await reply.send(b"x" * 10)
        reply.cut()

    for answer, length in ((endless, 64 * 1024), (cut, 10)):
        async with upstream(answer) as server:
            assert (await failure(read, server.base_url)).message.split() == ["500", str(length)]


@each_way
async def test_a_redirect_is_not_followed(read: Read) -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(302, {}, Location=f"{server.base_url}/elsewhere")

    async with upstream(answer) as server:
        assert (await failure(read, server.base_url)).message.startswith("302")
        assert len(server.requests) == 1


# ---- connections


@each_way
async def test_as_many_connections_as_calls_at_once_serve_all_that_follow(read: Read) -> None:
    together = asyncio.Barrier(5)

    async def answer(request: Request, reply: Reply) -> None:
        await together.wait()
        await serve_ones(request, reply)

    async with asyncio.timeout(30), upstream(answer) as server, transport() as asked:
        for _ in range(3):
            await asyncio.gather(*(read(asked, server.base_url) for _ in range(5)))
        assert (len(server.requests), server.connections) == (15, 5)


@each_way
async def test_a_refusal_that_was_read_leaves_its_connection_to_the_next_call(read: Read) -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(503, {})

    async with upstream(answer) as server, transport() as asked:
        for _ in range(2):
            with pytest.raises(UnavailableError):
                await read(asked, server.base_url)
        assert (len(server.requests), server.connections) == (2, 1)


@each_way
@pytest.mark.parametrize("begun", [False, True], ids=["before", "during"])
async def test_a_call_that_is_cancelled_closes_its_connection(read: Read, begun: bool) -> None:
    asked_for, gone = asyncio.Event(), asyncio.Event()

    async def answer(request: Request, reply: Reply) -> None:
        if begun:
            await reply.start(Content_Type=kind_of(request))
        asked_for.set()
        await reply.left()
        gone.set()

    async with asyncio.timeout(30), upstream(answer) as server, transport() as asked:
        task = asyncio.create_task(read(asked, server.base_url))
        await asked_for.wait()
        task.cancel()
        await gone.wait()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("way", ["events", "lines"])
async def test_a_stream_that_is_left_closes_its_connection(way: str) -> None:
    gone = asyncio.Event()

    async def answer(request: Request, reply: Reply) -> None:
        await reply.start(Content_Type=kind_of(request))
        await reply.send(b"data: a\n\n" if way == "events" else b"{}\n")
        await reply.left()
        gone.set()

    async with asyncio.timeout(30), upstream(answer) as server, transport() as asked:
        async with closing(getattr(asked, f"stream_{way}")(server.base_url, {}, {}, refuse)) as arrivals:
            await anext(arrivals)
        await gone.wait()


async def test_a_proxy_is_used_for_others_and_never_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream(serve_ones) as proxy, upstream(serve_ones) as server, transport() as asked:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "b.invalid")
        await read_document(asked, server.base_url)
        await read_document(asked, server.base_url.replace("127.0.0.1", "localhost"))
        await read_document(asked, "http://a.invalid/v1")
        with pytest.raises(UnavailableError):
            await read_document(asked, "http://b.invalid/v1")
    assert [request.line for request in proxy.requests] == ["GET http://a.invalid/v1 HTTP/1.1"]
    assert len(server.requests) == 2


# ---- a server that breaks


async def reset(_request: Request, reply: Reply) -> None:
    reply.cut()


async def garbage(_request: Request, reply: Reply) -> None:
    await reply.write(b"\x16\x03\x01\x02\x00 this is no HTTP\r\n\r\n")


async def half_close(_request: Request, reply: Reply) -> None:
    reply.half_close()
    await reply.left()


def begun(
    broken: Callable[[Request, Reply], Awaitable[None]],
) -> Callable[[Request, Reply], Awaitable[None]]:
    async def answer(request: Request, reply: Reply) -> None:
        await reply.start(Content_Type=kind_of(request))
        await reply.send(b": begun\n" if kind_of(request) == KINDS["events"] else b" \n")
        await broken(request, reply)

    return answer


@each_way
@pytest.mark.parametrize("broken", [reset, garbage, half_close])
async def test_a_server_that_breaks_before_it_answers_is_unreachable(read: Read, broken: Any) -> None:
    async with asyncio.timeout(30), upstream(broken) as server:
        error = await failure(read, server.base_url)
        # Only GET may be sent twice: it has no cost.
        assert len(server.requests) <= (2 if read is read_document else 1)
    assert (type(error), error.code) == (UnavailableError, "PROVIDER_UNREACHABLE")


@each_way
@pytest.mark.parametrize("broken", [reset, garbage, half_close])
async def test_a_server_that_breaks_in_its_answer_has_cut_it_off(read: Read, broken: Any) -> None:
    async with asyncio.timeout(30), upstream(begun(broken)) as server:
        error = await failure(read, server.base_url)
        assert len(server.requests) == 1
    assert isinstance(error, UnavailableError)
    # A connection that breaks in the same read as the head fails before the answer begins.
    assert error.code in {"STREAM_TRUNCATED", "PROVIDER_UNREACHABLE"}


# ---- time


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:{port}", "ClientConnectorError"),
        ("http://a.invalid:{port}", "ClientConnectorDNSError"),
        ("gopher://127.0.0.1:{port}", "NonHttpUrlClientError"),
    ],
)
async def test_what_is_wrong_with_an_address_is_named(url: str, name: str) -> None:
    async with upstream(serve_ones) as server:
        port = server.base_url.rpartition(":")[2].partition("/")[0]
    error = await failure(read_events, url.format(port=port))
    assert error.code == "PROVIDER_UNREACHABLE"
    assert f"({name})" in error.message


@each_way
async def test_a_connection_that_does_not_stand_in_time_is_given_up(read: Read) -> None:
    async with (
        asyncio.timeout(30),
        upstream(serve_ones) as server,
    ):  # which waits for the end of a request's head
        url = server.base_url.replace("http:", "https:")
        error = await failure(read, url, StreamTimeouts(connect=0.05))
    assert error.code == "PROVIDER_UNREACHABLE"
    assert "ConnectionTimeoutError" in error.message


async def say_nothing(_request: Request, reply: Reply) -> None:
    await reply.left()


async def keep_alive(request: Request, reply: Reply) -> None:
    """Show signs of life, and nothing else."""
    await reply.start(Content_Type=kind_of(request))
    while True:
        await reply.send(b": alive\n\n" if kind_of(request) == KINDS["events"] else b"\n")
        await asyncio.sleep(0.01)


async def stop(request: Request, reply: Reply) -> None:
    """Begin the answer, then send no more."""
    await reply.start(Content_Type=kind_of(request))
    await reply.send(b"data: a\n\n" if kind_of(request) == KINDS["events"] else b"{}\n")
    await reply.left()


async def never_end(request: Request, reply: Reply) -> None:
    await reply.start(Content_Type=kind_of(request))
    while True:
        await reply.send(b"data: a\n\n" if kind_of(request) == KINDS["events"] else b"{}\n")
        await asyncio.sleep(0.01)


SHORT = 0.2
BEGIN, PAUSE, END = "not started", "paused", "not complete"


@pytest.mark.parametrize(
    ("read", "answer", "timeouts", "problem"),
    [
        (read_events, say_nothing, StreamTimeouts(first_event=SHORT), BEGIN),
        (read_lines, say_nothing, StreamTimeouts(first_event=SHORT), BEGIN),
        (read_document, say_nothing, StreamTimeouts(first_event=SHORT), BEGIN),
        (read_events, keep_alive, StreamTimeouts(first_event=SHORT), BEGIN),
        (read_lines, keep_alive, StreamTimeouts(first_event=SHORT), BEGIN),
        (read_document, keep_alive, StreamTimeouts(first_event=SHORT), BEGIN),
        (read_events, stop, StreamTimeouts(between_chunks=SHORT), PAUSE),
        (read_lines, stop, StreamTimeouts(between_chunks=SHORT), PAUSE),
        (read_document, stop, StreamTimeouts(first_event=SHORT), BEGIN),
        (read_events, never_end, StreamTimeouts(total=SHORT), END),
        (read_lines, never_end, StreamTimeouts(total=SHORT), END),
        (read_document, never_end, StreamTimeouts(total=SHORT), END),
    ],
)
async def test_each_limit_ends_the_call_and_closes_its_connection(
    read: Read,
    answer: Any,
    timeouts: StreamTimeouts,
    problem: str,
) -> None:
    left = asyncio.Event()

    async def watched(request: Request, reply: Reply) -> None:
        try:
            await answer(request, reply)
        finally:
            left.set()

    async with asyncio.timeout(30), upstream(watched) as server:
        error = await failure(read, server.base_url, timeouts)
        await left.wait()
    assert error.code == "PROVIDER_TIMEOUT"
    assert problem in error.message


@each_way
@pytest.mark.parametrize("answer", [say_nothing, keep_alive, stop, never_end])
async def test_the_callers_deadline_is_nearer_than_every_limit(read: Read, answer: Any) -> None:
    async with asyncio.timeout(30), upstream(answer) as server:
        call_context.begin_call(request_id=None, timeout=SHORT)
        assert isinstance(await failure(read, server.base_url), DeadlineError)
