"""Services that a test wrote, in the place of those that a command runs inside of itself."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc.aio

from peripety.client import open_channel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager


def embedding(
    *add: Callable[[grpc.aio.Server], None],
) -> Callable[..., AbstractAsyncContextManager[grpc.aio.Channel]]:
    """What stands for `embedded_services`: a real server on loopback with these services."""

    @asynccontextmanager
    async def embedded(*_: str) -> AsyncIterator[grpc.aio.Channel]:
        server = grpc.aio.server()
        for each in add:
            each(server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with open_channel(f"127.0.0.1:{port}") as channel:
            yield channel
        await server.stop(None)

    return embedded
