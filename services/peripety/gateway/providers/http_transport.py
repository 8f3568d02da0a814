"""HTTP transport of providers: connection pool, streams, time-outs.

It reads event streams, line streams and single documents, with a time-out on every wait. The connections are
aiohttp's, because httpx2's cost several times as much (docs/explanation/decisions/0005-http-client.md).
Redirects, cookies and credentials from `.netrc` are disabled: a provider's key must not meet them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.request import getproxies, proxy_bypass

import aiohttp
import jiter
import yarl
from multidict import CIMultiDict

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
_CONNECTION_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientResponseError, aiohttp.ClientPayloadError)
_NOT_CONNECTED = (aiohttp.ServerTimeoutError, aiohttp.ClientHttpProxyError, aiohttp.ClientConnectorError)


class TransportError(Exception):
    """The server is unreachable, or the exchange with it failed.

    Attributes:
        is_connection_lost: whether an established connection failed, rather than its establishment.
    """

    def __init__(self, problem: str, *, is_connection_lost: bool) -> None:
        super().__init__(problem)
        self.is_connection_lost = is_connection_lost


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request.

    Attributes:
        method: the HTTP method.
        url: the URL.
        headers: the headers.
        content: the body; None for none.
        connect_timeout: time-out in seconds for DNS, connection and TLS.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    connect_timeout: float | None = None


class ConnectionPool:
    """Persistent connections, opened on demand.

    A response must be read to its end, or closed with `close_response`, which closes its connection. The
    number of connections is not limited here; the number of calls is.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[tuple[str, str], str | None] = {}

    async def send(self, request: HttpRequest) -> aiohttp.ClientResponse:
        """Send a request, and return the response without its body.

        Raises:
            TransportError: the server is unreachable, or does not speak HTTP.
        """
        opened: list[bool] = []
        try:
            return await self._send_once(request, opened)
        except TransportError as error:
            # A server may close an idle connection just as a request arrives; only then is a retry safe. On a
            # new connection the server has received the request, and answering it twice may cost twice.
            if opened or not error.is_connection_lost:
                raise
            return await self._send_once(request, opened)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _send_once(self, request: HttpRequest, opened: list[bool]) -> aiohttp.ClientResponse:
        with _translate_errors():
            url = _parse_url(request.url)
            return await self._get_session().request(
                request.method,
                url,
                headers=request.headers,
                data=request.content,
                allow_redirects=False,
                proxy=self._proxy(url),
                timeout=aiohttp.ClientTimeout(total=None, connect=request.connect_timeout),
                trace_request_ctx=opened,
            )

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

    def _proxy(self, url: yarl.URL) -> str | None:
        """Return the proxy from the environment for a server, unless the server is local."""
        server = (url.scheme, url.host or "")
        if server not in self._proxies:
            direct = is_loopback(server[1]) or proxy_bypass(server[1])
            named = {} if direct else getproxies()
            self._proxies[server] = named.get(url.scheme) or named.get("all")
        return self._proxies[server]


@lru_cache(256)
def _parse_url(url: str) -> yarl.URL:
    # A URL that is already encoded must stay as it is: an encoded colon in a name is not a separator.
    return yarl.URL(url, encoded=url.isascii() and url.isprintable() and " " not in url)


async def read_chunk(response: aiohttp.ClientResponse) -> bytes:
    """Return the next bytes of a response, merged if they arrived together; empty at its end.

    Raises:
        TransportError: the connection failed.
    """
    with _translate_errors():
        return await response.content.readany()


def close_response(response: aiohttp.ClientResponse) -> None:
    """Close the connection, unless the whole body was read: it is then back in the pool."""
    if not response.closed:
        response.close()


async def _on_connection_created(_session: object, context: Any, _parameters: object) -> None:
    context.trace_request_ctx.append(True)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:
        is_connection_lost = isinstance(error, _CONNECTION_LOST) and not isinstance(error, _NOT_CONNECTED)
        # aiohttp's exceptions contain the request, which contains the key, so only their names are used.
        raise TransportError(type(error).__name__, is_connection_lost=is_connection_lost) from None


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
        self._pool = ConnectionPool()

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
            to_error: converts a status other than 200 to an error.
            done: returns, after each list, whether the rest of the stream can be ignored.

        Raises:
            UnavailableError: the server is unreachable, too slow, or broke off.
            DeadlineError: the caller's deadline passed first.
            FailedPreconditionError: the response is not such a stream.
            PeripetyError: the error from `to_error`.
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
        """Post `body` to `url` and yield the lines of an NDJSON response; else as `stream_events`."""
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
            PeripetyError: the error from `to_error`.
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
    ) -> HttpRequest:
        headers = {"Accept": accepted, **_HEADERS, **headers}
        if body is None:
            return HttpRequest(method, url, headers, None, self._timeouts.connect)
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        return HttpRequest(
            method,
            url,
            {**headers, "Content-Type": _JSON},
            content,
            self._timeouts.connect,
        )

    async def _stream(
        self,
        request: HttpRequest,
        to_error: ToError,
        decoder: StreamDecoder[T],
        framing: StreamFraming,
        done: Callable[[], bool],
    ) -> AsyncGenerator[list[T], None]:
        patience = StreamTimer(self._server, self._timeouts)
        async with self._open_response(request, to_error, patience) as answer:
            self._check_content_type(answer, framing.value)
            while not answer.content.at_eof() and (piece := await self._read_chunk(answer, patience)):
                events = decoder.feed(piece)
                if events:
                    patience.first_event_seen()
                    yield events
                if done():
                    await _drain(answer)
                    return

    @asynccontextmanager
    async def _open_response(
        self,
        request: HttpRequest,
        to_error: ToError,
        timer: StreamTimer,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the response to a request; its connection is closed unless the body is read to the end."""
        try:
            answer = await timer.wait_for(self._pool.send(request))
        except TransportError as error:
            raise self._connection_error("PROVIDER_UNREACHABLE", "unreachable", error) from None
        try:
            if answer.status != _OK:
                beginning = await self._read_error_body(answer, timer)
                raise to_error(answer.status, _join_headers(answer), beginning)
            yield answer
        finally:
            close_response(answer)

    async def _read_chunk(self, answer: aiohttp.ClientResponse, timer: StreamTimer) -> bytes:
        """Return the next bytes of a response, merged if they arrived together; empty at its end."""
        try:
            return await timer.wait_for(read_chunk(answer))
        except TransportError as error:
            raise self._connection_error(
                "STREAM_TRUNCATED",
                "connection lost during its answer",
                error,
            ) from None

    async def _read_error_body(self, answer: aiohttp.ClientResponse, timer: StreamTimer) -> bytes:
        """Return the start of an error's body, up to a limit."""
        body = bytearray()
        try:
            while len(body) < _MAX_ERROR_BYTES and (piece := await self._read_chunk(answer, timer)):
                body += piece
        except UnavailableError:
            pass
        return bytes(body[:_MAX_ERROR_BYTES])

    def _check_content_type(self, answer: aiohttp.ClientResponse, wanted: str) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != wanted:
            raise FailedPreconditionError(
                f"provider {self._server}: response is {kind or 'untyped'} instead of {wanted}; check"
                " that the base URL is that of its API",
                code="NOT_AN_EVENT_STREAM",
            )

    def _connection_error(self, code: str, problem: str, error: TransportError) -> UnavailableError:
        return UnavailableError(f"provider {self._server}: {problem} ({error})", code=code)


def _join_headers(answer: aiohttp.ClientResponse) -> CIMultiDict[str]:
    """Return the headers, by names in any case; the values of a repeated one are joined by commas."""
    headers = answer.headers
    return CIMultiDict({name.lower(): ", ".join(headers.getall(name)) for name in headers})


async def _drain(answer: aiohttp.ClientResponse) -> None:
    """Read to the end, which is near: only then can the connection be reused."""
    if answer.content.at_eof():
        return
    with suppress(TimeoutError, TransportError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while await read_chunk(answer):
                pass
