"""Connection writer: exact bytes at exact times, and every way to end a connection.

The aiohttp protocol accepts large request bodies, and logs without request content.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aiohttp import HttpVersion11, web

from peripety.core.logging_setup import describe_error
from peripety.llmsim.delivery.plan import ResponseEnd
from peripety.llmsim.types import ApiError, ApiErrorKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

    from peripety.llmsim.delivery.http import Delivery, ResponseHead


MAX_BODY = 64 * 2**20
"""Maximum size of a request body, in bytes."""

_CLOSING_SECONDS = 1

_log = logging.getLogger(__name__)


class _Protocol(web.RequestHandler):
    __slots__ = ()

    def log_exception(self, *_: Any, **given: Any) -> None:
        """Log a failure below the HTTP layer, without the text of the exception, which may quote requests."""
        error = given.get("exc_info")
        _log.warning(
            "connection failed",
            extra=describe_error(error) if isinstance(error, BaseException) else {},
        )


class _AlreadySentResponse(web.StreamResponse):
    """Placeholder response for aiohttp: the real response was sent already."""

    def __init__(self, *, kept: bool) -> None:
        super().__init__()
        self._keep_alive = kept

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the response was sent already."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the response was sent already."""


class ProtocolFactory(web.Server):
    """Factory of connection protocols.

    Args:
        handle: answers a request and returns True if the connection stays open; cancelled when the
            client disconnects.
    """

    def __init__(self, handle: Callable[[web.BaseRequest], Awaitable[bool]]) -> None:
        sent = {kept: _AlreadySentResponse(kept=kept) for kept in (False, True)}

        async def answered(request: web.BaseRequest) -> web.StreamResponse:
            self._active_requests.add(request.task)
            try:
                return sent[await handle(request)]
            finally:
                self._active_requests.discard(request.task)

        super().__init__(answered, handler_cancellation=True, request_factory=_request, access_log=None)
        self._active_requests: set[asyncio.Task[None]] = set()

    async def shut_down(self, grace: float) -> None:
        """Wait for active answers up to a number of seconds, then close every connection."""
        self.pre_shutdown()
        if self._active_requests:
            _, late = await asyncio.wait(self._active_requests, timeout=grace)
            for task in late:
                task.cancel()
        await self.shutdown(_CLOSING_SECONDS)

    def __call__(self) -> web.RequestHandler:
        """Return the protocol of a new connection."""
        return _Protocol(self, loop=self._loop, **self._kwargs)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)


_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
# Time for a client to read sent data before a reset may discard it.
_DRAIN_SECONDS = 0.1
_NO_LINGER = struct.pack("ii", 1, 0)  # makes closing reset the connection
_REASONS = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}


class ClientConnection:
    """The connection of one request.

    Args:
        request: the request.

    Attributes:
        used: True if data was sent.
        keep_alive: True if the connection serves further requests.
    """

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._time = asyncio.get_running_loop().time
        self._head = b""
        self._chunked = False
        self.used = False
        self.keep_alive = request.keep_alive

    async def read_body(self) -> bytes:
        """Read the body of the request.

        Raises:
            ApiError: the body is too large, or does not match its headers.
            ConnectionResetError: the client has disconnected.
        """
        request = self._request
        try:
            if (request.content_length or 0) <= MAX_BODY:
                if request.headers.get("expect", "").lower() == "100-continue":
                    self._transport.write(_CONTINUE)
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            pass  # the headers did not announce the size
        except (ValueError, web.RequestPayloadError):
            self.keep_alive = False
            raise ApiError(ApiErrorKind.INVALID_REQUEST, "The body does not match its headers") from None
        self.keep_alive = False
        raise ApiError(ApiErrorKind.TOO_LARGE, f"The body exceeds the limit of {MAX_BODY} bytes")

    async def deliver(self, delivery: Delivery, started: Callable[[], None] = lambda: None) -> None:
        """Send an answer at the times of its plan, relative to now, and end it as planned.

        Steps that are due at the same time leave together. A slow client applies back-pressure; overdue steps
        then follow without a pause, so that later steps are on time again.

        Args:
            delivery: the answer.
            started: called when the first byte leaves.

        Raises:
            ConnectionResetError: the client has disconnected.
        """
        begun = self._time()
        if delivery.head is not None:
            self._buffer_head(delivery.head)
        plan = delivery.plan
        steps = [] if self._request.method == "HEAD" else plan.steps
        sent = 0
        while sent < len(steps):
            await self._sleep_until(begun + steps[sent].at_ms / 1000)
            passed = (self._time() - begun) * 1000
            due = sent + 1
            while due < len(steps) and steps[due].at_ms <= passed:
                due += 1
            self._send(self._frame_chunks([step.data for step in steps[sent:due]]), started)
            sent = due
            await self._request.writer.drain()
        if plan.end is ResponseEnd.HANG:
            await asyncio.Event().wait()
        await self._sleep_until(begun + plan.ends_ms / 1000)
        if plan.end is ResponseEnd.CLEAN:
            self._send(_LAST_CHUNK if self._chunked else b"", started)
            return
        self._send(b"", started)
        self.keep_alive = False
        if plan.end is ResponseEnd.RESET:
            await self._reset()

    def _buffer_head(self, head: ResponseHead) -> None:
        """Buffer the head; it leaves together with the first bytes of the body."""
        lines = [
            f"HTTP/1.1 {head.status} {_REASONS.get(head.status, '')}",
            f"content-type: {head.media_type}",
        ]
        lines += [f"{name}: {value}" for name, value in head.headers.items()]
        if head.length is not None:
            lines.append(f"content-length: {head.length}")
        elif self._request.version >= HttpVersion11:
            self._chunked = True
            lines.append("transfer-encoding: chunked")
        else:
            self.keep_alive = False
        if not self.keep_alive:
            lines.append("connection: close")
        elif self._request.version < HttpVersion11:
            lines.append("connection: keep-alive")
        self._head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    async def _sleep_until(self, moment: float) -> None:
        remaining = moment - self._time()
        if remaining > 0:
            await asyncio.sleep(remaining)

    def _frame_chunks(self, pieces: Sequence[bytes]) -> bytes:
        if self._chunked:
            pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
        return b"".join(pieces)

    def _send(self, data: bytes, started: Callable[[], None]) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        if not data:
            return
        transport = self._transport
        if not self.used:
            self.used = True
            started()
        transport.write(data)

    async def _reset(self) -> None:
        transport = self._transport
        transport.set_write_buffer_limits(0)  # sent data must be on its way first
        await self._request.writer.drain()
        if self.used:
            await asyncio.sleep(_DRAIN_SECONDS)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        transport.abort()

    @property
    def _transport(self) -> asyncio.Transport:
        transport = self._request.transport
        if transport is None:
            raise ConnectionResetError("the client has disconnected")
        return transport
