"""Connection writer: exact bytes at exact times, and every way to end a connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, web

from peripety.simulator.delivery.plan import Ending
from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.server.protocol import MAX_BODY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.simulator.delivery.http import Delivery, Head

__all__ = ["Connection"]

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
# Time for a client to read sent data before a reset may discard it.
_READING_SECONDS = 0.1
_NO_LINGER = struct.pack("ii", 1, 0)  # makes closing reset the connection
_REASONS = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}


class Connection:
    """The connection of one request.

    Args:
        request: the request.

    Attributes:
        used: True if data was sent.
        kept: True if the connection serves further requests.
    """

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._time = asyncio.get_running_loop().time
        self._head = b""
        self._chunked = False
        self.used = False
        self.kept = request.keep_alive

    async def body(self) -> bytes:
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
            self.kept = False
            raise ApiError(ErrorKind.INVALID_REQUEST, "The body does not match its headers") from None
        self.kept = False
        raise ApiError(ErrorKind.TOO_LARGE, f"The body exceeds the limit of {MAX_BODY} bytes")

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
            self._open(delivery.head)
        plan = delivery.plan
        steps = [] if self._request.method == "HEAD" else plan.steps
        sent = 0
        while sent < len(steps):
            await self._until(begun + steps[sent].at_ms / 1000)
            passed = (self._time() - begun) * 1000
            due = sent + 1
            while due < len(steps) and steps[due].at_ms <= passed:
                due += 1
            self._send(self._framed([step.data for step in steps[sent:due]]), started)
            sent = due
            await self._request.writer.drain()
        if plan.ending is Ending.HANG:
            await asyncio.Event().wait()
        await self._until(begun + plan.ends_ms / 1000)
        if plan.ending is Ending.CLEAN:
            self._send(_LAST_CHUNK if self._chunked else b"", started)
            return
        self._send(b"", started)
        self.kept = False
        if plan.ending is Ending.RESET:
            await self._reset()

    def _open(self, head: Head) -> None:
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
            self.kept = False
        if not self.kept:
            lines.append("connection: close")
        elif self._request.version < HttpVersion11:
            lines.append("connection: keep-alive")
        self._head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    async def _until(self, moment: float) -> None:
        remaining = moment - self._time()
        if remaining > 0:
            await asyncio.sleep(remaining)

    def _framed(self, pieces: Sequence[bytes]) -> bytes:
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
            await asyncio.sleep(_READING_SECONDS)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        transport.abort()

    @property
    def _transport(self) -> asyncio.Transport:
        transport = self._request.transport
        if transport is None:
            raise ConnectionResetError("the client has disconnected")
        return transport
