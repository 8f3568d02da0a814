"""HTTP providers under control of a test, and a plain HTTP client."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import pytest


JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Response:
    """A received HTTP response."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


def send(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Send a request; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    with closing(HTTPConnection(url.removeprefix("http://"), timeout=60)) as connection:
        connection.request(method, path, data, {**JSON, **(headers or {})})
        response = connection.getresponse()
        received = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, received, response.read())


def prompt(text: str, **more: Any) -> dict[str, Any]:
    """The body of a request for a chat completion."""
    return {"model": "gpt-6", "messages": [{"role": "user", "content": text}], **more}


_KINDS = (
    "conflict",
    "invalid_request",
    "out_of_credits",
    "overloaded",
    "permission_denied",
    "too_large",
    "unavailable",
)

RULES = """
[[responses]]
pattern = { type = "exact", text = "refused twice" }
response = "At last."
failure = { type = "overloaded", times = 2 }

[[responses]]
pattern = { type = "exact", text = "in seconds" }
response = "At last."
failure = { type = "rate_limit", retry_after = 3, times = 1 }

[[responses]]
pattern = { type = "exact", text = "in milliseconds" }
response = "At last."
failure = { type = "rate_limit", retry_after = 1.25, form = "milliseconds", times = 1 }

[[responses]]
pattern = { type = "exact", text = "at a date" }
response = "At last."
failure = { type = "rate_limit", retry_after = 40, form = "date", times = 1 }

[[responses]]
pattern = { type = "exact", text = "cut" }
response = "one two three"
failure = { type = "missing_end" }

[[responses]]
pattern = { type = "exact", text = "broken" }
response = "one two three"
failure = { type = "error_in_stream", after_chunks = 2 }
""" + "".join(
    f"""
[[responses]]
pattern = {{ type = "glob", pattern = "fails: {kind}*" }}
failure = {{ type = "{kind}" }}
"""
    for kind in _KINDS
)
"""Rules of a scenario file; a prompt `fails: KIND` fails that way."""


def noted_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record how long an SDK wants to wait before each further attempt, in seconds, without the wait."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Request:
    """A received HTTP request."""

    line: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Reply:
    """An HTTP response, sent piece by piece."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def start(self, status: int = 200, **headers: str) -> None:
        lines = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._writer.write(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode())
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def stream(self, *events: bytes) -> None:
        await self.start()
        for event in events:
            await self.send(event)
        await self.end()

    async def refuse(self, status: int, document: Any = None, **headers: str) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self._writer.write(
            f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n".encode()
            + "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()).encode()
            + b"\r\n"
            + body,
        )
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        """Send bytes as they are, whether they are HTTP or not."""
        self._writer.write(data)
        await self._writer.drain()

    def half_close(self) -> None:
        """Shut down the sending side, and continue to listen."""
        self._writer.write_eof()

    def cut(self) -> None:
        """Drop the connection."""
        self._writer.transport.abort()

    async def left(self) -> None:
        """Wait until the client has gone away."""
        with suppress(ConnectionError):
            while await self._reader.read(1024):
                pass


@dataclass
class FakeServer:
    """HTTP server with scripted replies. Use it for code that takes the address of a provider.

    Attributes:
        answer: sends the reply to a request.
        base_url: the address for a provider of the generic kind.
        requests: the requests so far.
        connections: number of connections so far.
    """

    answer: Callable[[Request, Reply], Awaitable[None]]
    base_url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    _serving: list[asyncio.Task[Any] | None] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving.append(asyncio.current_task())
        try:
            while True:
                request = await _read(reader)
                self.requests.append(request)
                await self.answer(request, Reply(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def stop(self) -> None:
        """End the connections that are still open."""
        serving = [task for task in self._serving if task is not None]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving)
        await asyncio.sleep(0)  # lets the loop close the aborted connections


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(head[0], headers, raw)


@asynccontextmanager
async def upstream(answer: Callable[[Request, Reply], Awaitable[None]]) -> AsyncIterator[FakeServer]:
    """Serve `answer` on a free port until the block ends."""
    server = FakeServer(answer)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.base_url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        await server.stop()


class WritesWithPermit:
    """Answer of a `FakeServer`: the same pieces of text for each request, each after a permit of the test.

    Args:
        pieces: the pieces.
    """

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self._permits = asyncio.Semaphore(0)

    def permit(self, count: int = 1) -> None:
        """Let it write this many pieces."""
        for _ in range(count):
            self._permits.release()

    async def wait_for_permit(self) -> None:
        await self._permits.acquire()

    async def __call__(self, _request: Request, reply: Reply) -> None:
        await reply.start(Connection="close")
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(self._write(reply))
            await reply.left()
            writing.cancel()

    async def _write(self, reply: Reply) -> None:
        with suppress(ConnectionError):
            for piece in self.pieces:
                await self.wait_for_permit()
                await reply.send(delta(piece))
            for last in (finish(), DONE):
                await reply.send(last)
            await reply.end()
            reply.half_close()


def event(document: Any) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(document)}\n\n".encode()


def delta(text: str | None, **extra: Any) -> bytes:
    """A piece of an answer."""
    return event({"model": "m-1", "choices": [{"index": 0, "delta": {"content": text}, **extra}]})


def finish(reason: str = "stop") -> bytes:
    """The end of an answer."""
    return event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})


def usage(prompt: int, completion: int, cached: int = 0) -> bytes:
    """The usage that follows the end."""
    return event(
        {
            "choices": [],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        },
    )


def answering(*texts: str) -> Callable[[Request, Reply], Awaitable[None]]:
    """Answer the first request with the first text, and so on; the last text is repeated."""
    remaining = list(texts)

    async def answer(_request: Request, reply: Reply) -> None:
        text = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        await reply.stream(delta(text), finish(), usage(7, 3, 2), DONE)

    return answer
