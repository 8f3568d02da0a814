"""Recording proxy: forwards all traffic to a provider unchanged, and records the answers."""

from __future__ import annotations

import logging
import re
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import ClientError, ClientSession, ClientTimeout, web
from multidict import CIMultiDict
from yarl import URL

from peripety.llmsim.determinism import make_signature
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.record.provider_readers import AnswerReader
from peripety.llmsim.record.recorder import observed_pace, to_scripted_response
from peripety.llmsim.record.response_draft import fault_for_embedded_error, fault_for_error
from peripety.llmsim.script.types import Fault, Script
from peripety.llmsim.server.routing import WIRES, Router
from peripety.llmsim.server.runner import LOOPBACK, accept_connections
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import ApiError
from peripety.llmsim.wire.base import HttpCall, WireOperation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from aiohttp import ClientResponse

    from peripety.llmsim.record.recorder import ScriptRecorder
    from peripety.llmsim.record.response_draft import ResponseDraft
    from peripety.llmsim.types import SimRequest
    from peripety.llmsim.wire.base import SimService, Wire


_log = logging.getLogger(__name__)

_REFUSED = 400
_MAX_LOGGED = 10_000
_SIGNATURE = re.compile(rb'("(?:signature|thought_?[Ss]ignature|encrypted_content)"\s*:\s*)"[^"]*"')


def observe_request(
    router: Router,
    service: SimService,
    recorder: ScriptRecorder,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
) -> AnswerObserver | None:
    """Start to observe a request for a model answer; return None for other requests.

    Args:
        router: maps paths to APIs and operations.
        service: state that the APIs need to parse requests.
        recorder: receives the observed answer.
        method: the HTTP method.
        path: the quoted path.
        query: the query parameters.
        headers: the headers, names in lower case.
        body: the body.
    """
    recorder.redactor.add_request(headers, query)
    targets = [target for target in router.targets_at(path) if target.route.method == method]
    if not targets:
        return None
    target = router.select_target(targets, headers, body)
    if target.route.operation is not WireOperation.GENERATE:
        return None
    # The parser rejects signatures of the provider, so they are replaced by one of the simulator.
    own = _SIGNATURE.sub(rb'\1"' + make_signature("recorded").encode() + b'"', body)
    try:
        request = target.wire.parse_request(
            HttpCall(target.route, headers, {**query, **target.params}, own),
            service,
        )
    except ApiError as error:
        _log.warning(
            "request not recorded: it is not valid",
            extra={"api": target.wire.api.value, "kind": error.kind},
        )
        return None
    return AnswerObserver(target.wire, request, service, recorder)


class AnswerObserver:
    """Observer of one answer as it passes through the proxy.

    Args:
        wire: the API.
        request: the request.
        service: stores the objects that the API remembers.
        recorder: receives the observed answer.
    """

    def __init__(
        self,
        wire: Wire,
        request: SimRequest,
        service: SimService,
        recorder: ScriptRecorder,
    ) -> None:
        self._wire, self._request = wire, request
        self._service, self._recorder = service, recorder
        self._started = time.monotonic()
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._chunks: list[tuple[float, bytes]] = []

    def on_response(self, status: int, headers: Mapping[str, str]) -> None:
        """Handle the start of a response.

        Args:
            status: the HTTP status.
            headers: the headers, names in lower case.
        """
        self._status, self._headers = status, headers

    def on_data(self, data: bytes) -> None:
        """Handle received bytes."""
        self._chunks.append((self._now_ms(), data))

    def on_unreachable(self) -> None:
        """Handle a connection failure: no response arrives."""
        self._recorder.record_answer(self._request, None, _default_fault("network_unreachable"), None)

    def on_end(self, *, complete: bool) -> None:
        """Handle the end of the response.

        Args:
            whole: True if the connection marks the response as complete.
        """
        body = b"".join(data for _, data in self._chunks)
        if self._status >= _REFUSED:
            failure = fault_for_error(self._wire, self._status, self._headers, body, time.time())
            self._recorder.record_answer(self._request, None, failure, None)
            return
        reader = AnswerReader(self._request.api, self._headers.get("content-type", ""))
        try:
            for at_ms, data in self._chunks:
                reader.feed(data, at_ms)
            reader.close()
        except ValueError:
            self._recorder.record_answer(self._request, None, _unreadable_fault(body, whole=complete), None)
            return
        self._record(reader.draft, self._cut_fault(reader.draft, whole=complete))

    def _record(self, draft: ResponseDraft, failure: Fault | None) -> None:
        request = self._request
        pace = observed_pace(draft, self._now_ms(), stream=request.stream)
        if failure is not None:
            self._recorder.record_answer(request, to_scripted_response(draft, pace), failure, None)
            return
        reply = draft.to_reply(request.model)
        for table, entries in self._wire.objects_to_store(request, reply).items():
            for key, value in entries.items():
                self._service.objects(table).put(key, value)
        self._recorder.record_answer(request, to_scripted_response(draft, pace), None, reply)

    def _cut_fault(self, draft: ResponseDraft, *, whole: bool) -> Fault | None:
        chunks = len(draft.chunk_times)
        if draft.error is not None:
            return fault_for_embedded_error(self._wire, draft.error, chunks, stream=self._request.stream)
        if draft.ended and whole:
            return None
        if draft.stop is None or not whole:
            return _default_fault("stream_cut", after_chunks=chunks)
        return _default_fault("missing_end")

    def _now_ms(self) -> float:
        return (time.monotonic() - self._started) * 1000


def _unreadable_fault(body: bytes, *, whole: bool) -> Fault:
    if not whole:
        return _default_fault("connection_reset")
    if not body.strip():
        return _default_fault("empty_body")
    return _default_fault("malformed_json", raw=body[:_MAX_LOGGED].decode(errors="replace"))


def _default_fault(name: str, **settings: object) -> Fault:
    return Fault(name, {**KINDS[name].default_settings, **settings})


# Hop-by-hop headers apply to one connection; a proxy has two.
_HOP_BY_HOP_HEADERS = frozenset({
    "connection", "host", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
_REPLACED_HEADERS = "x-peripety-"
_CLOSING_SECONDS = 1


@asynccontextmanager
async def serve_proxy(
    url: str,
    recorder: ScriptRecorder,
    *,
    host: str = LOOPBACK,
    port: int = 0,
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
            async with accept_connections(protocols, host, port) as own:
                yield own
        finally:
            await protocols.shutdown(_CLOSING_SECONDS)


class _Proxy:
    def __init__(self, url: str, recorder: ScriptRecorder, session: ClientSession) -> None:
        self._url = url.rstrip("/")
        self._recorder = recorder
        self._router = Router(WIRES)
        self._service = Simulator(Script())  # stores the objects of the APIs
        self._session = session

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Forward a request and its response."""
        body = await request.content.read()
        listener = self._observe(request, body)
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
                listener.on_unreachable()
            return _abort_connection(request)
        async with upstream:
            return await self._forward_response(request, upstream, listener)

    def _observe(self, request: web.BaseRequest, body: bytes) -> AnswerObserver | None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        return observe_request(
            self._router,
            self._service,
            self._recorder,
            method=request.method,
            path=request.rel_url.raw_path,
            query=request.rel_url.query,
            headers=headers,
            body=body,
        )

    async def _forward_response(
        self,
        request: web.BaseRequest,
        upstream: ClientResponse,
        listener: AnswerObserver | None,
    ) -> web.StreamResponse:
        headers = CIMultiDict(_forwarded_headers(upstream.headers.items()))
        answer = web.StreamResponse(status=upstream.status, reason=upstream.reason, headers=headers)
        await answer.prepare(request)
        if listener is not None:
            listener.on_response(upstream.status, {name.lower(): value for name, value in headers.items()})
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
                listener.on_data(data)
        if whole:
            await answer.write_eof()
        else:
            answer = _abort_connection(request)
        if listener is not None:
            listener.on_end(
                complete=whole,
            )  # last, so that a problem with the file does not affect the response
        return answer


def _request_headers(request: web.BaseRequest) -> CIMultiDict[str]:
    headers = CIMultiDict(
        (name, value)
        for name, value in _forwarded_headers(request.headers.items())
        if not name.lower().startswith(_REPLACED_HEADERS)
    )
    headers["Accept-Encoding"] = "identity"  # compressed responses cannot be observed
    return headers


def _forwarded_headers(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP_HEADERS)


def _abort_connection(request: web.BaseRequest) -> web.StreamResponse:
    """Abort the connection of the client as the provider aborted its own."""
    if request.transport is not None:
        request.transport.abort()
    return web.StreamResponse()
