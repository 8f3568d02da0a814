"""The connections to one provider: aiohttp's, behind the transport interface of httpx2.

They cost a fraction of those that httpx2 brings along (docs/decisions/0005-http-client.md). What httpx2's
client would add is not wanted here: redirects, cookies, credentials from `.netrc`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import yarl

from peripety.config import is_loopback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["Body", "ConnectionPool"]

_KEEP_SECONDS = 60.0
# The first match tells the error of httpx2.
_ERRORS: tuple[tuple[type[Exception], type[httpx2.TransportError]], ...] = (
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


class ConnectionPool(httpx2.AsyncBaseTransport):
    """Sends requests over kept connections, and opens as many as are needed at once.

    What is read of a response are the bytes as they arrive, all of those that arrived together. Closing a
    response before its end closes its connection. The number of connections has no limit here: the calls
    under way have one.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[tuple[str, str], str | None] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; see `httpx2.AsyncBaseTransport`.

        Of the time-outs only `connect` is obeyed, which covers the name, the connection and its encryption.

        Raises:
            httpx2.TransportError: the server cannot be reached, or does not speak HTTP.
        """
        opened: list[bool] = []
        try:
            return await self._send(request, opened)
        except (httpx2.ReadError, httpx2.RemoteProtocolError):
            # A server may close a kept connection just when a request is on its way to it. On a new one the
            # server has heard the question, and answering it twice may cost twice.
            if opened:
                raise
            return await self._send(request, opened)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: httpx2.Request, opened: list[bool]) -> httpx2.Response:
        connect = request.extensions.get("timeout", {}).get("connect")
        with _translated():
            response = await self._connected().request(
                request.method,
                yarl.URL(str(request.url), encoded=True),
                headers=request.headers.multi_items(),
                data=request.content or None,
                allow_redirects=False,
                proxy=self._proxy(request.url),
                timeout=aiohttp.ClientTimeout(total=None, connect=connect),
                trace_request_ctx=opened,
            )
        return httpx2.Response(response.status, headers=response.raw_headers, stream=Body(response))

    def _connected(self) -> aiohttp.ClientSession:
        """The session, which needs a running loop to be made."""
        if self._session is None:
            tracing = aiohttp.TraceConfig()
            tracing.on_connection_create_end.append(_note_opened)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trace_configs=[tracing],
            )
        return self._session

    def _proxy(self, url: httpx2.URL) -> str | None:
        """The proxy that the environment names for a server, unless the server is on this machine."""
        server = (url.scheme, url.host)
        if server not in self._proxies:
            direct = is_loopback(url.host) or proxy_bypass(url.host)
            named = {} if direct else getproxies()
            self._proxies[server] = named.get(url.scheme) or named.get("all")
        return self._proxies[server]


class Body(httpx2.AsyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def ended(self) -> bool:
        """Whether all of it was read, and its end seen: its connection then serves other requests."""
        return self._response.content.at_eof()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with _translated():
            chunk = await self._response.content.readany()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Close the connection, unless the whole body was read: then it is kept already."""
        if not self._response.closed:
            self._response.close()


async def _note_opened(_session: object, context: Any, _parameters: object) -> None:
    context.trace_request_ctx.append(True)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:
        kind = next(kind for cause, kind in _ERRORS if isinstance(error, cause))
        # aiohttp's exceptions hold the request, and the request holds the key: their names have to do.
        raise kind(type(error).__name__) from None
