"""Connection pool of a provider: aiohttp behind the transport interface of httpx2.

It costs a fraction of httpx2's own pool (docs/decisions/0005-http-client.md). The other features of httpx2's
client are unwanted: redirects, cookies, credentials from `.netrc`.
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
# The first match determines the httpx2 error.
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
        """Return the session; created lazily, because it needs a running event loop."""
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
        """Return the proxy from the environment for a server, unless the server is local."""
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
        """Return True if the body was read to its end; its connection then serves other requests."""
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
        """Close the connection, unless the whole body was read: it is then back in the pool."""
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
        # aiohttp's exceptions contain the request, which contains the key, so only their names are used.
        raise kind(type(error).__name__) from None
