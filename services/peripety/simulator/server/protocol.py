"""aiohttp protocol: large request bodies, and logs without request content."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web

from peripety.logs import outline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

__all__ = ["MAX_BODY", "Protocols"]

MAX_BODY = 64 * 2**20
"""Maximum size of a request body, in bytes."""

_CLOSING_SECONDS = 1

_log = logging.getLogger(__name__)


class _Protocol(web.RequestHandler):
    __slots__ = ()

    def log_exception(self, *_: Any, **given: Any) -> None:
        """Log a failure below the HTTP layer, without the text of the exception, which may quote requests."""
        error = given.get("exc_info")
        _log.warning("connection failed", extra=outline(error) if isinstance(error, BaseException) else {})


class _Sent(web.StreamResponse):
    """Placeholder response for aiohttp: the real response was sent already."""

    def __init__(self, *, kept: bool) -> None:
        super().__init__()
        self._keep_alive = kept

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the response was sent already."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the response was sent already."""


class Protocols(web.Server):
    """Factory of connection protocols.

    Args:
        handle: answers a request and returns True if the connection stays open; cancelled when the
            client disconnects.
    """

    def __init__(self, handle: Callable[[web.BaseRequest], Awaitable[bool]]) -> None:
        sent = {kept: _Sent(kept=kept) for kept in (False, True)}

        async def answered(request: web.BaseRequest) -> web.StreamResponse:
            self._answering.add(request.task)
            try:
                return sent[await handle(request)]
            finally:
                self._answering.discard(request.task)

        super().__init__(answered, handler_cancellation=True, request_factory=_request, access_log=None)
        self._answering: set[asyncio.Task[None]] = set()

    async def stop(self, grace: float) -> None:
        """Wait for active answers up to a number of seconds, then close every connection."""
        self.pre_shutdown()
        if self._answering:
            _, late = await asyncio.wait(self._answering, timeout=grace)
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
