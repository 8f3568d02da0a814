"""HTTP for providers: one pooled client, a limit on every wait, events as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx2

from peripety import __version__
from peripety.context import remaining
from peripety.errors import DeadlineError, FailedPreconditionError, PeripetyError, UnavailableError
from peripety.gateway.providers.sse import ServerSentEvent, SseDecoder

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

__all__ = ["EventStreamTransport", "Refuse", "Timeouts"]

Refuse: TypeAlias = Callable[[int, Mapping[str, str], bytes], PeripetyError]
"""Turns a status other than 200, its headers and its body into the error to raise."""

_HEADERS = {
    "Accept": "text/event-stream",
    # A compressed stream would be held back until the compressor has enough of it.
    "Accept-Encoding": "identity",
    "User-Agent": f"peripety/{__version__}",
}
# A server on this machine is never reached through the proxy that the environment names.
_DIRECT: dict[str, httpx2.AsyncBaseTransport | None] = dict.fromkeys(
    ("all://127.0.0.1", "all://localhost", "all://[::1]")
)
_LIMITS = httpx2.Limits(max_connections=512, max_keepalive_connections=64, keepalive_expiry=60.0)
_MAX_ERROR_BYTES = 64 * 1024
_OK = 200


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a provider; the caller's deadline shortens each of them.

    Attributes:
        connect: until the connection stands.
        first_event: from the request until the first event; a long prompt is read in this time.
        between_chunks: between two pieces of the answer.
    """

    connect: float = 10.0
    first_event: float = 120.0
    between_chunks: float = 60.0


class EventStreamTransport:
    """Posts JSON and follows the event stream that answers it.

    Args:
        server: what to call the other side in messages.
        timeouts: how long to wait for it.
    """

    def __init__(self, server: str, timeouts: Timeouts = Timeouts()) -> None:
        self._server = server
        self._timeouts = timeouts
        self._client = httpx2.AsyncClient(
            headers=_HEADERS,
            limits=_LIMITS,
            mounts=_DIRECT,
            timeout=httpx2.Timeout(None, connect=timeouts.connect),
            follow_redirects=False,
        )

    async def events(
        self, url: str, body: Mapping[str, Any], headers: Mapping[str, str], refuse: Refuse
    ) -> AsyncGenerator[list[ServerSentEvent], None]:
        """Post `body` to `url` and yield events, those that arrived together as one list.

        Closing the generator closes the connection, and so stops the work of the provider.

        Raises:
            UnavailableError: the server cannot be reached, is too slow, or broke off.
            DeadlineError: the caller's time ran out first.
            PeripetyError: what `refuse` made of a status other than 200.
        """
        patience = _Patience(self._server, self._timeouts)
        decoder = SseDecoder()
        async with self._open(url, body, headers, patience) as response:
            chunks = response.aiter_bytes()
            if response.status_code != _OK:
                raise refuse(response.status_code, response.headers, await _beginning(chunks, patience))
            _require_event_stream(self._server, response)
            async for chunk in self._read(chunks, patience):
                events = decoder.feed(chunk)
                if events:
                    patience.first_event_seen()
                    yield events

    async def aclose(self) -> None:
        """Close the pooled connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def _open(
        self, url: str, body: Mapping[str, Any], headers: Mapping[str, str], patience: _Patience
    ) -> AsyncIterator[httpx2.Response]:
        request = self._client.build_request("POST", url, json=body, headers=headers)
        with self._translated("PROVIDER_UNREACHABLE", "cannot be reached"):
            async with patience.wait():
                response = await self._send(request)
        try:
            yield response
        finally:
            await response.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        connections_opened = 0

        async def count(step: str, _info: Mapping[str, Any]) -> None:
            nonlocal connections_opened
            connections_opened += step == "connection.connect_tcp.complete"

        request.extensions = {**request.extensions, "trace": count}
        try:
            return await self._client.send(request, stream=True)
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            # A server may close a kept connection just when a request is on its way to it. On a new one the
            # server has heard the question, and answering it twice may cost twice.
            if connections_opened:
                raise
            return await self._client.send(request, stream=True)

    async def _read(self, chunks: AsyncIterator[bytes], patience: _Patience) -> AsyncGenerator[bytes, None]:
        while True:
            with self._translated("STREAM_TRUNCATED", "broke off in the middle of its answer"):
                async with patience.wait():
                    chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk

    @contextmanager
    def _translated(self, code: str, problem: str) -> Iterator[None]:
        try:
            yield
        except httpx2.HTTPError as error:
            # The library's exception holds the request, and the request holds the key.
            raise UnavailableError(
                f"The {self._server} server {problem} ({type(error).__name__})", code=code
            ) from None


class _Patience:
    """How long the next wait of one request may take."""

    def __init__(self, server: str, timeouts: Timeouts) -> None:
        self._server = server
        self._between = timeouts.between_chunks
        self._first = timeouts.first_event
        self._first_by: float | None = asyncio.get_running_loop().time() + timeouts.first_event

    def first_event_seen(self) -> None:
        """From here on, only the pauses count."""
        self._first_by = None

    def wait(self) -> AbstractAsyncContextManager[None]:
        """Limit the wait inside the block."""
        if self._first_by is None:
            return self._wait(self._between, f"paused for {self._between:g} s in the middle of its answer")
        left = self._first_by - asyncio.get_running_loop().time()
        return self._wait(left, f"did not begin to answer within {self._first:g} s")

    @asynccontextmanager
    async def _wait(self, seconds: float, problem: str) -> AsyncIterator[None]:
        left = remaining()
        deadline_is_nearer = left is not None and left < seconds
        try:
            async with asyncio.timeout(left if deadline_is_nearer else seconds) as scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            if deadline_is_nearer:
                raise DeadlineError(
                    f"The time ran out while the {self._server} server was answering; allow more",
                ) from None
            raise UnavailableError(f"The {self._server} server {problem}", code="PROVIDER_TIMEOUT") from None


async def _beginning(chunks: AsyncIterator[bytes], patience: _Patience) -> bytes:
    """As much of an error's body as is worth reading."""
    body = b""
    try:
        while len(body) < _MAX_ERROR_BYTES:
            async with patience.wait():
                body += await anext(chunks)
    except (StopAsyncIteration, httpx2.HTTPError, UnavailableError):
        pass
    return body[:_MAX_ERROR_BYTES]


def _require_event_stream(server: str, response: httpx2.Response) -> None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise FailedPreconditionError(
            f"The {server} server answered with {kind or 'something'} in place of an event stream: is the"
            " base URL the one of its API?",
            code="NOT_AN_EVENT_STREAM",
        )
