"""HTTP transport of providers.

It reads event streams, line streams and single documents, with a time-out on every wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, cast

import httpx2
import jiter

from peripety import __version__
from peripety.errors import FailedPreconditionError, PeripetyError, UnavailableError
from peripety.gateway.providers.framing import MAX_EVENT_BYTES, Decoder, Framing, require_size
from peripety.gateway.providers.ndjson import NdjsonDecoder
from peripety.gateway.providers.patience import Patience, Timeouts
from peripety.gateway.providers.pool import Body, ConnectionPool
from peripety.gateway.providers.sse import ServerSentEvent, SseDecoder

__all__ = ["HttpTransport", "Refuse", "Timeouts"]

T = TypeVar("T")

Refuse: TypeAlias = Callable[[int, Mapping[str, str], bytes], PeripetyError]
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


def _never() -> bool:
    return False


class HttpTransport:
    """JSON over persistent HTTP connections to one provider.

    Redirects are not followed, because they would receive the key.

    Args:
        server: name of the server in messages.
        timeouts: the time-outs.
    """

    def __init__(self, server: str, timeouts: Timeouts) -> None:
        self._server = server
        self._timeouts = timeouts
        self._pool = ConnectionPool()

    def events(
        self,
        url: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        refuse: Refuse,
        done: Callable[[], bool] = _never,
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
        request = self._request("POST", url, headers, Framing.EVENTS.value, body)
        return self._follow(request, refuse, SseDecoder(), Framing.EVENTS, done)

    def lines(
        self,
        url: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        refuse: Refuse,
        done: Callable[[], bool] = _never,
    ) -> AsyncGenerator[list[str], None]:
        """Post `body` to `url` and yield the lines of an NDJSON response; else the same as `events`."""
        request = self._request("POST", url, headers, Framing.LINES.value, body)
        return self._follow(request, refuse, NdjsonDecoder(), Framing.LINES, done)

    async def document(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        refuse: Refuse,
        *,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Request one JSON document, within the time-out of a first event.

        Raises:
            UnavailableError: the server is unreachable, too slow, broke off, or did not answer in JSON.
            DeadlineError: the caller's deadline passed first.
            PeripetyError: the error from `refuse`.
        """
        patience = Patience(self._server, self._timeouts)
        received = bytearray()
        async with self._answer(self._request(method, url, headers, _JSON, body), refuse, patience) as answer:
            while piece := await self._piece(answer, patience):
                received += piece
                require_size(len(received), MAX_EVENT_BYTES)
        try:
            return jiter.from_json(bytes(received))
        except ValueError:
            raise UnavailableError(
                f"provider {self._server}: response is not JSON", code="STREAM_MALFORMED"
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

    async def _follow(
        self,
        request: httpx2.Request,
        refuse: Refuse,
        decoder: Decoder[T],
        framing: Framing,
        done: Callable[[], bool],
    ) -> AsyncGenerator[list[T], None]:
        patience = Patience(self._server, self._timeouts)
        async with self._answer(request, refuse, patience) as answer:
            self._require_kind(answer, framing.value)
            while not _body(answer).ended and (piece := await self._piece(answer, patience)):
                events = decoder.feed(piece)
                if events:
                    patience.first_event_seen()
                    yield events
                if done():
                    await _drain(_body(answer))
                    return

    @asynccontextmanager
    async def _answer(
        self, request: httpx2.Request, refuse: Refuse, patience: Patience
    ) -> AsyncIterator[httpx2.Response]:
        """Yield the response to a request; its connection is closed unless the body is read to the end."""
        try:
            answer = await patience.wait_for(self._pool.handle_async_request(request))
        except httpx2.TransportError as error:
            raise self._lost("PROVIDER_UNREACHABLE", "unreachable", error) from None
        try:
            if answer.status_code != _OK:
                beginning = await self._beginning(answer, patience)
                raise refuse(answer.status_code, answer.headers, beginning)
            yield answer
        finally:
            await answer.aclose()

    async def _piece(self, answer: httpx2.Response, patience: Patience) -> bytes:
        """Return the next bytes of a response, merged if they arrived together; empty at its end."""
        try:
            return await patience.wait_for(anext(_body(answer), b""))
        except httpx2.TransportError as error:
            raise self._lost("STREAM_TRUNCATED", "connection lost during its answer", error) from None

    async def _beginning(self, answer: httpx2.Response, patience: Patience) -> bytes:
        """Return the start of an error's body, up to a limit."""
        body = bytearray()
        try:
            while len(body) < _MAX_ERROR_BYTES and (piece := await self._piece(answer, patience)):
                body += piece
        except UnavailableError:
            pass
        return bytes(body[:_MAX_ERROR_BYTES])

    def _require_kind(self, answer: httpx2.Response, wanted: str) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != wanted:
            raise FailedPreconditionError(
                f"provider {self._server}: response is {kind or 'untyped'} instead of {wanted}; check"
                " that the base URL is that of its API",
                code="NOT_AN_EVENT_STREAM",
            )

    def _lost(self, code: str, problem: str, error: httpx2.TransportError) -> UnavailableError:
        return UnavailableError(f"provider {self._server}: {problem} ({error})", code=code)


def _body(answer: httpx2.Response) -> Body:
    return cast("Body", answer.stream)


async def _drain(body: Body) -> None:
    """Read to the end, which is near: only then can the connection be reused."""
    if body.ended:
        return
    with suppress(TimeoutError, httpx2.TransportError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in body:
                pass
