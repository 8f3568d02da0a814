"""Server lifecycle, in the current event loop or in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from peripety.errors import UnavailableError
from peripety.simulator.server.app import App
from peripety.simulator.server.control import Control
from peripety.simulator.server.protocol import Protocols
from peripety.simulator.server.routing import Router
from peripety.simulator.wire.registry import WIRES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from aiohttp import web

    from peripety.simulator.simulator import Simulator

__all__ = ["LOOPBACK", "Server", "listening", "serve", "serve_in_thread"]

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def serve(
    simulator: Simulator,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    grace: float = 0.0,
    reload: Callable[[], None] | None = None,
) -> AsyncIterator[str]:
    """Serve a simulator until the block ends, and yield its base URL.

    Args:
        simulator: the simulator.
        host: the address to listen on; any client that reaches it may read captured calls.
        port: the port; 0 selects a free one.
        grace: seconds that active answers get when the block ends.
        reload: reads the script again, for the control endpoint.

    Raises:
        UnavailableError: the server cannot listen on the address.
    """
    app = App(simulator, Router(WIRES), Control(simulator, reload))
    protocols = Protocols(app.handle)
    try:
        async with listening(protocols, host, port) as url:
            yield url
    finally:
        await protocols.stop(grace)


@asynccontextmanager
async def listening(protocols: web.Server, host: str, port: int) -> AsyncIterator[str]:
    """Accept connections until the block ends, and yield their URL.

    Args:
        protocols: creates the protocol of each connection.
        host: the address to listen on.
        port: the port; 0 selects a free one.

    Raises:
        UnavailableError: the server cannot listen on the address.
    """
    try:
        listener = await asyncio.get_running_loop().create_server(protocols, host, port, backlog=1024)
    except OSError as error:
        raise UnavailableError(
            f"cannot listen on {host}:{port}: {error.strerror or error}", code="ADDRESS_UNAVAILABLE"
        ) from error
    try:
        yield _url(listener.sockets[0].getsockname())
    finally:
        listener.close()


class Server:
    """A simulator served by a thread of its own.

    Attributes:
        url: the base URL.
    """

    def __init__(self, simulator: Simulator, host: str, port: int) -> None:
        self._listening: Future[str] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(simulator, host, port)), name="simulator", daemon=True
        )
        self._thread.start()
        self.url = self._listening.result()

    async def _serve(self, simulator: Simulator, host: str, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            async with serve(simulator, host=host, port=port) as url:
                self._listening.set_result(url)
                await self._stopping.wait()
        except Exception as error:
            if self._listening.done():
                raise
            self._listening.set_exception(error)

    def close(self) -> None:
        """Stop the server; active answers are cut off."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve_in_thread(simulator: Simulator, *, host: str = LOOPBACK, port: int = 0) -> Server:
    """Serve a simulator from a new thread until the result is closed. See `serve`."""
    return Server(simulator, host, port)


def _url(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
