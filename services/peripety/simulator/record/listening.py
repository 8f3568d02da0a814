"""Observation of one proxied answer, until the recording is known."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING

from peripety.simulator.chance import signature
from peripety.simulator.failures import KINDS
from peripety.simulator.model import ApiError
from peripety.simulator.record.errors import inside_answer, instead_of_answer
from peripety.simulator.record.readers import Reader
from peripety.simulator.record.scripting import observed, scripted
from peripety.simulator.scenario.model import Failure
from peripety.simulator.wire.base import Call, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.model import Request
    from peripety.simulator.record.readers import Draft
    from peripety.simulator.record.recorder import Recorder
    from peripety.simulator.server.routing import Router
    from peripety.simulator.wire.base import Service, Wire

__all__ = ["Listener", "listen"]

_log = logging.getLogger(__name__)

_REFUSED = 400
_SHOWN = 10_000
_SIGNATURE = re.compile(rb'("(?:signature|thought_?[Ss]ignature|encrypted_content)"\s*:\s*)"[^"]*"')


def listen(
    router: Router,
    service: Service,
    recorder: Recorder,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
) -> Listener | None:
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
    recorder.redactor.learn(headers, query)
    targets = [target for target in router.at(path) if target.route.method == method]
    if not targets:
        return None
    target = router.choose(targets, headers, body)
    if target.route.operation is not Operation.GENERATE:
        return None
    # The parser rejects signatures of the provider, so they are replaced by one of the simulator.
    own = _SIGNATURE.sub(rb'\1"' + signature("recorded").encode() + b'"', body)
    try:
        request = target.wire.request(Call(target.route, headers, {**query, **target.params}, own), service)
    except ApiError as error:
        _log.warning(
            "request not recorded: it is not valid",
            extra={"api": target.wire.api.value, "kind": error.kind},
        )
        return None
    return Listener(target.wire, request, service, recorder)


class Listener:
    """Observer of one answer as it passes through the proxy.

    Args:
        wire: the API.
        request: the request.
        service: stores the objects that the API remembers.
        recorder: receives the observed answer.
    """

    def __init__(self, wire: Wire, request: Request, service: Service, recorder: Recorder) -> None:
        self._wire, self._request = wire, request
        self._service, self._recorder = service, recorder
        self._begun = time.monotonic()
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._chunks: list[tuple[float, bytes]] = []

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """Handle the start of a response.

        Args:
            status: the HTTP status.
            headers: the headers, names in lower case.
        """
        self._status, self._headers = status, headers

    def heard(self, data: bytes) -> None:
        """Handle received bytes."""
        self._chunks.append((self._now_ms(), data))

    def unreachable(self) -> None:
        """Handle a connection failure: no response arrives."""
        self._recorder.add(self._request, None, _failure("network_unreachable"), None)

    def ended(self, *, whole: bool) -> None:
        """Handle the end of the response.

        Args:
            whole: True if the connection marks the response as complete.
        """
        body = b"".join(data for _, data in self._chunks)
        if self._status >= _REFUSED:
            failure = instead_of_answer(self._wire, self._status, self._headers, body, time.time())
            self._recorder.add(self._request, None, failure, None)
            return
        reader = Reader(self._request.api, self._headers.get("content-type", ""))
        try:
            for at_ms, data in self._chunks:
                reader.feed(data, at_ms)
            reader.close()
        except ValueError:
            self._recorder.add(self._request, None, _unreadable(body, whole=whole), None)
            return
        self._record(reader.draft, self._broken(reader.draft, whole=whole))

    def _record(self, draft: Draft, failure: Failure | None) -> None:
        request = self._request
        pace = observed(draft, self._now_ms(), stream=request.stream)
        if failure is not None:
            self._recorder.add(request, scripted(draft, pace), failure, None)
            return
        reply = draft.reply(request.model)
        for table, entries in self._wire.stored(request, reply).items():
            for key, value in entries.items():
                self._service.objects(table).put(key, value)
        self._recorder.add(request, scripted(draft, pace), None, reply)

    def _broken(self, draft: Draft, *, whole: bool) -> Failure | None:
        chunks = len(draft.times)
        if draft.error is not None:
            return inside_answer(self._wire, draft.error, chunks, stream=self._request.stream)
        if draft.ended and whole:
            return None
        if draft.stop is None or not whole:
            return _failure("stream_cut", after_chunks=chunks)
        return _failure("missing_end")

    def _now_ms(self) -> float:
        return (time.monotonic() - self._begun) * 1000


def _unreadable(body: bytes, *, whole: bool) -> Failure:
    if not whole:
        return _failure("connection_reset")
    if not body.strip():
        return _failure("empty_body")
    return _failure("malformed_json", raw=body[:_SHOWN].decode(errors="replace"))


def _failure(name: str, **settings: object) -> Failure:
    return Failure(name, {**KINDS[name].defaults, **settings})
