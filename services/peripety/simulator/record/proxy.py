"""Recording proxy: forwards all traffic to a provider unchanged, and records the answers."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import ClientError, ClientSession, ClientTimeout, web
from multidict import CIMultiDict
from yarl import URL

from peripety.simulator.record.listening import listen
from peripety.simulator.scenario.model import Scenario
from peripety.simulator.server.routing import Router
from peripety.simulator.server.runner import LOOPBACK, listening
from peripety.simulator.simulator import Simulator
from peripety.simulator.wire.registry import WIRES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from aiohttp import ClientResponse

    from peripety.simulator.record.listening import Listener
    from peripety.simulator.record.recorder import Recorder

__all__ = ["serve_proxy"]

_log = logging.getLogger(__name__)

# Hop-by-hop headers apply to one connection; a proxy has two.
_OF_A_CONNECTION = frozenset({
    "connection", "host", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
_OWN = "x-peripety-"
_CLOSING_SECONDS = 1


@asynccontextmanager
async def serve_proxy(
    url: str, recorder: Recorder, *, host: str = LOOPBACK, port: int = 0
) -> AsyncIterator[str]:
    """Serve a proxy until the block ends, and yield its base URL.

    Args:
        url: the base URL of the provider.
        recorder: records the answers.
        host: the address to listen on.
        port: the port; 0 selects a free one.

    Raises:
        UnavailableError: the server cannot listen on the address.
    """
    async with ClientSession(auto_decompress=False, timeout=ClientTimeout(total=None)) as session:
        proxy = _Proxy(url, recorder, session)
        protocols = web.Server(proxy.handle, handler_cancellation=True, access_log=None)
        try:
            async with listening(protocols, host, port) as own:
                yield own
        finally:
            await protocols.shutdown(_CLOSING_SECONDS)


class _Proxy:
    def __init__(self, url: str, recorder: Recorder, session: ClientSession) -> None:
        self._url = url.rstrip("/")
        self._recorder = recorder
        self._router = Router(WIRES)
        self._service = Simulator(Scenario())  # stores the objects of the APIs
        self._session = session

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Forward a request and its response."""
        body = await request.content.read()
        listener = self._listen(request, body)
        try:
            upstream = await self._session.request(
                request.method,
                URL(self._url + request.raw_path, encoded=True),
                headers=_request_headers(request),
                data=body,
                allow_redirects=False,
                skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            )
        except ClientError as error:
            _log.warning("the provider is unreachable", extra={"error": type(error).__name__})
            if listener is not None:
                listener.unreachable()
            return _cut_off(request)
        async with upstream:
            return await self._pass_back(request, upstream, listener)

    def _listen(self, request: web.BaseRequest, body: bytes) -> Listener | None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        return listen(
            self._router,
            self._service,
            self._recorder,
            method=request.method,
            path=request.rel_url.raw_path,
            query=request.rel_url.query,
            headers=headers,
            body=body,
        )

    async def _pass_back(
        self, request: web.BaseRequest, upstream: ClientResponse, listener: Listener | None
    ) -> web.StreamResponse:
        headers = CIMultiDict(_passed(upstream.headers.items()))
        answer = web.StreamResponse(status=upstream.status, reason=upstream.reason, headers=headers)
        await answer.prepare(request)
        if listener is not None:
            listener.answered(upstream.status, {name.lower(): value for name, value in headers.items()})
        whole = True
        while True:
            try:
                data = await upstream.content.readany()
            except ClientError:
                whole = False
                break
            if not data:
                break
            await answer.write(data)
            if listener is not None:
                listener.heard(data)
        if whole:
            await answer.write_eof()
        else:
            answer = _cut_off(request)
        if listener is not None:
            listener.ended(whole=whole)  # last, so that a problem with the file does not affect the response
        return answer


def _request_headers(request: web.BaseRequest) -> CIMultiDict[str]:
    headers = CIMultiDict(
        (name, value) for name, value in _passed(request.headers.items()) if not name.lower().startswith(_OWN)
    )
    headers["Accept-Encoding"] = "identity"  # compressed responses cannot be observed
    return headers


def _passed(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((name, value) for name, value in headers if name.lower() not in _OF_A_CONNECTION)


def _cut_off(request: web.BaseRequest) -> web.StreamResponse:
    """Abort the connection of the client as the provider aborted its own."""
    if request.transport is not None:
        request.transport.abort()
    return web.StreamResponse()
