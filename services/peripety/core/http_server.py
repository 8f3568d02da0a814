"""HTTP servers beside the gRPC ones: an ASGI application on a socket that is already open."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Iterator


@asynccontextmanager
async def serve_http(app: Any, listening: socket.socket, **options: Any) -> AsyncIterator[None]:
    """Serve an application until the block ends; then its requests end, and the socket is closed.

    Args:
        app: the ASGI application.
        listening: the socket; it is closed at the end.
        options: further settings of `uvicorn.Config`.
    """
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", server_header=False, **options
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve([listening]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
        listening.close()


class _Server(uvicorn.Server):
    """HTTP server that leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield
