"""Connection pool, streams, time-outs.

Time-outs of one answer, each bounded by the caller's deadline.

Connection pool of a provider: aiohttp behind the transport interface of httpx2.

It costs a fraction of httpx2's own pool (docs/explanation/decisions/0005-http-client.md). The other features
of httpx2's
client are unwanted: redirects, cookies, credentials from `.netrc`.

HTTP transport of providers.

It reads event streams, line streams and single documents, with a time-out on every wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import jiter
import yarl

from peripety.core.call_context import remaining
from peripety.core.config import is_loopback
from peripety.errors import DeadlineError, FailedPreconditionError, PeripetyError, UnavailableError
from peripety.gateway.providers.stream_framing import (
    MAX_EVENT_BYTES,
    NdjsonDecoder,
    ServerSentEvent,
    SseDecoder,
    StreamDecoder,
    StreamFraming,
    check_event_size,
)
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StreamTimeouts:
    """Time-outs in seconds; the caller's deadline bounds each of them.

    Attributes:
        connect: for establishing the connection.
        first_event: from the request to the first event, including the time to read a long prompt. Comments
            and blank lines, which only show that the server is alive, do not count as events.
        between_chunks: between two pieces of the answer.
        total: from the request to the end of the answer.
    """

    connect: float = 10.0
    first_event: float = 120.0
    between_chunks: float = 60.0
    total: float = 1_800.0


class StreamTimer:
    """Time-outs of the successive waits for one answer; starts with the request.

    Args:
        server: name of the server in messages.
        timeouts: the limits.
    """

    def __init__(self, server: str, timeouts: StreamTimeouts) -> None:
        self._server = server
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._total_deadline = now + timeouts.total
        self._first_event_deadline: float | None = now + timeouts.first_event

    def first_event_seen(self) -> None:
        """Switch from the first-event time-out to the one between chunks."""
        self._first_event_deadline = None

    async def wait_for(self, arrival: Awaitable[T]) -> T:
        """Wait for the next piece, up to the nearest limit.

        Raises:
            DeadlineError: the caller's deadline passed first.
            UnavailableError: the provider took too long.
        """
        now = self._loop.time()
        next_by = self._first_event_deadline or now + self._timeouts.between_chunks
        left = remaining()
        caller_by = float("inf") if left is None else now + left
        try:
            async with asyncio.timeout_at(min(next_by, self._total_deadline, caller_by)) as scope:
                return await arrival
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._timeout_error(next_by, caller_by) from None

    def _timeout_error(self, next_by: float, caller_by: float) -> PeripetyError:
        if caller_by <= min(next_by, self._total_deadline):
            return DeadlineError(
                f"deadline exceeded while provider {self._server} was answering; allow more time",
            )
        limits = self._timeouts
        if self._total_deadline <= next_by:
            problem = f"answer not complete within {limits.total:g} s"
        elif self._first_event_deadline is not None:
            problem = f"answer not started within {limits.first_event:g} s"
        else:
            problem = f"answer paused for {limits.between_chunks:g} s"
        return UnavailableError(f"provider {self._server}: {problem}", code="PROVIDER_TIMEOUT")


_IDLE_SECONDS = 60.0
# The first match determines the httpx2 error.
_TRANSPORT_ERRORS: tuple[tuple[type[Exception], type[httpx2.TransportError]], ...] = (
    (aiohttp.ServerTimeoutError, httpx2.ConnectTimeout),
    (aiohttp.ClientHttpProxyError, httpx2.ProxyError),
    (aiohttp.ClientConnectorError, httpx2.ConnectError),
    (aiohttp.ServerDisconnectedError, httpx2.RemoteProtocolError),
    (aiohttp.ClientConnectionError, httpx2.ReadError),
    (aiohttp.ClientResponseError, httpx2.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx2.RemoteProtocolError),
    (ValueError, httpx2.UnsupportedProtocol),  # the URL, or that of the proxy
    (Exception, httpx2.TransportError),
)


class PooledTransport(httpx2.AsyncBaseTransport):
    """Transport over persistent connections, opened on demand.

    A response yields bytes as they arrive, merged if they arrived together. Closing a response before its end
    closes its connection. The number of connections is not limited here; the number of calls is.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[tuple[str, str], str | None] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; see `httpx2.AsyncBaseTransport`.

        Of the time-outs only `connect` applies; it covers DNS, connection and TLS.

        Raises:
            httpx2.TransportError: the server is unreachable, or does not speak HTTP.
        """
        opened: list[bool] = []
        try:
            return await self._send(request, opened)
        except (httpx2.ReadError, httpx2.RemoteProtocolError):
            # A server may close an idle connection just as a request arrives; only then is a retry safe. On a
            # new connection the server has received the request, and answering it twice may cost twice.
            if opened:
                raise
            return await self._send(request, opened)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: httpx2.Request, opened: list[bool]) -> httpx2.Response:
        connect = request.extensions.get("timeout", {}).get("connect")
        with _translate_errors():
            response = await self._get_session().request(
                request.method,
                yarl.URL(str(request.url), encoded=True),
                headers=request.headers.multi_items(),
                data=request.content or None,
                allow_redirects=False,
                proxy=self._proxy(request.url),
                timeout=aiohttp.ClientTimeout(total=None, connect=connect),
                trace_request_ctx=opened,
            )
        return httpx2.Response(response.status, headers=response.raw_headers, stream=ResponseBody(response))

    def _get_session(self) -> aiohttp.ClientSession:
        """Return the session; created lazily, because it needs a running event loop."""
        if self._session is None:
            tracing = aiohttp.TraceConfig()
            tracing.on_connection_create_end.append(_on_connection_created)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trace_configs=[tracing],
            )
        return self._session

    def _proxy(self, url: httpx2.URL) -> str | None:
        """Return the proxy from the environment for a server, unless the server is local."""
        server = (url.scheme, url.host)
        if server not in self._proxies:
            direct = is_loopback(url.host) or proxy_bypass(url.host)
            named = {} if direct else getproxies()
            self._proxies[server] = named.get(url.scheme) or named.get("all")
        return self._proxies[server]


class ResponseBody(httpx2.AsyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def is_ended(self) -> bool:
        """Return True if the body was read to its end; its connection then serves other requests."""
        return self._response.content.at_eof()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with _translate_errors():
            chunk = await self._response.content.readany()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Close the connection, unless the whole body was read: it is then back in the pool."""
        if not self._response.closed:
            self._response.close()


async def _on_connection_created(_session: object, context: Any, _parameters: object) -> None:
    context.trace_request_ctx.append(True)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:
        kind = next(kind for cause, kind in _TRANSPORT_ERRORS if isinstance(error, cause))
        # aiohttp's exceptions contain the request, which contains the key, so only their names are used.
        raise kind(type(error).__name__) from None


ToError: TypeAlias = Callable[[int, Mapping[str, str], bytes], PeripetyError]
"""Converts a status other than 200, its headers and its body to the error to raise."""

_JSON = "application/json"
_HEADERS = {
    # A compressed stream would be delayed until the compressor has enough data.
    "Accept-Encoding": "identity",
    "User-Agent": f"peripety/{__version__}",
}
_MAX_ERROR_BYTES = 64 * 1024
_DRAIN_SECONDS = 0.2
_OK = 200
_parsed_url = lru_cache(256)(httpx2.URL)


def _never_done() -> bool:
    return False


class HttpTransport:
    """JSON over persistent HTTP connections to one provider.

    Redirects are not followed, because they would receive the key.

    Args:
        server: name of the server in messages.
        timeouts: the time-outs.
    """

    def __init__(self, server: str, timeouts: StreamTimeouts) -> None:
        self._server = server
        self._timeouts = timeouts
        self._pool = PooledTransport()

    def stream_events(
        self,
        url: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        to_error: ToError,
        done: Callable[[], bool] = _never_done,
    ) -> AsyncGenerator[list[ServerSentEvent], None]:
        """Post `body` to `url` and yield the server-sent events of the response.

        Events that arrive together form one list. Closing the generator closes the connection, which stops
        the provider's work.

        Args:
            url: the URL.
            body: the request body.
            headers: headers besides those of the transport.
            refuse: converts a status other than 200 to an error.
            done: returns, after each list, whether the rest of the stream can be ignored.

        Raises:
            UnavailableError: the server is unreachable, too slow, or broke off.
            DeadlineError: the caller's deadline passed first.
            FailedPreconditionError: the response is not such a stream.
            PeripetyError: the error from `refuse`.
        """
        request = self._request("POST", url, headers, StreamFraming.EVENTS.value, body)
        return self._stream(request, to_error, SseDecoder(), StreamFraming.EVENTS, done)

    def stream_lines(
        self,
        url: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        to_error: ToError,
        done: Callable[[], bool] = _never_done,
    ) -> AsyncGenerator[list[str], None]:
        """Post `body` to `url` and yield the lines of an NDJSON response; else the same as `events`."""
        request = self._request("POST", url, headers, StreamFraming.LINES.value, body)
        return self._stream(request, to_error, NdjsonDecoder(), StreamFraming.LINES, done)

    async def fetch_json(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        to_error: ToError,
        *,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Request one JSON document, within the time-out of a first event.

        Raises:
            UnavailableError: the server is unreachable, too slow, broke off, or did not answer in JSON.
            DeadlineError: the caller's deadline passed first.
            PeripetyError: the error from `refuse`.
        """
        patience = StreamTimer(self._server, self._timeouts)
        received = bytearray()
        async with self._open_response(
            self._request(method, url, headers, _JSON, body),
            to_error,
            patience,
        ) as answer:
            while piece := await self._read_chunk(answer, patience):
                received += piece
                check_event_size(len(received), MAX_EVENT_BYTES)
        try:
            return jiter.from_json(bytes(received))
        except ValueError:
            raise UnavailableError(
                f"provider {self._server}: response is not JSON",
                code="STREAM_MALFORMED",
            ) from None

    async def aclose(self) -> None:
        """Close the persistent connections."""
        await self._pool.aclose()

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        accepted: str,
        body: Mapping[str, Any] | None,
    ) -> httpx2.Request:
        return httpx2.Request(
            method,
            _parsed_url(url),
            headers={"Accept": accepted, **_HEADERS, **headers},
            json=body,
            extensions={"timeout": {"connect": self._timeouts.connect}},
        )

    async def _stream(
        self,
        request: httpx2.Request,
        to_error: ToError,
        decoder: StreamDecoder[T],
        framing: StreamFraming,
        done: Callable[[], bool],
    ) -> AsyncGenerator[list[T], None]:
        patience = StreamTimer(self._server, self._timeouts)
        async with self._open_response(request, to_error, patience) as answer:
            self._check_content_type(answer, framing.value)
            while not _response_body(answer).is_ended and (piece := await self._read_chunk(answer, patience)):
                events = decoder.feed(piece)
                if events:
                    patience.first_event_seen()
                    yield events
                if done():
                    await _drain(_response_body(answer))
                    return

    @asynccontextmanager
    async def _open_response(
        self,
        request: httpx2.Request,
        to_error: ToError,
        timer: StreamTimer,
    ) -> AsyncIterator[httpx2.Response]:
        """Yield the response to a request; its connection is closed unless the body is read to the end."""
        try:
            answer = await timer.wait_for(self._pool.handle_async_request(request))
        except httpx2.TransportError as error:
            raise self._connection_error("PROVIDER_UNREACHABLE", "unreachable", error) from None
        try:
            if answer.status_code != _OK:
                beginning = await self._read_error_body(answer, timer)
                raise to_error(answer.status_code, answer.headers, beginning)
            yield answer
        finally:
            await answer.aclose()

    async def _read_chunk(self, answer: httpx2.Response, timer: StreamTimer) -> bytes:
        """Return the next bytes of a response, merged if they arrived together; empty at its end."""
        try:
            return await timer.wait_for(anext(_response_body(answer), b""))
        except httpx2.TransportError as error:
            raise self._connection_error(
                "STREAM_TRUNCATED",
                "connection lost during its answer",
                error,
            ) from None

    async def _read_error_body(self, answer: httpx2.Response, timer: StreamTimer) -> bytes:
        """Return the start of an error's body, up to a limit."""
        body = bytearray()
        try:
            while len(body) < _MAX_ERROR_BYTES and (piece := await self._read_chunk(answer, timer)):
                body += piece
        except UnavailableError:
            pass
        return bytes(body[:_MAX_ERROR_BYTES])

    def _check_content_type(self, answer: httpx2.Response, wanted: str) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != wanted:
            raise FailedPreconditionError(
                f"provider {self._server}: response is {kind or 'untyped'} instead of {wanted}; check"
                " that the base URL is that of its API",
                code="NOT_AN_EVENT_STREAM",
            )

    def _connection_error(self, code: str, problem: str, error: httpx2.TransportError) -> UnavailableError:
        return UnavailableError(f"provider {self._server}: {problem} ({error})", code=code)


def _response_body(answer: httpx2.Response) -> ResponseBody:
    return cast("ResponseBody", answer.stream)


async def _drain(body: ResponseBody) -> None:
    """Read to the end, which is near: only then can the connection be reused."""
    if body.is_ended:
        return
    with suppress(TimeoutError, httpx2.TransportError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in body:
                pass
