"""Server lifecycle of the scripted LLM, in the current event loop or in a thread of its own.

One base URL serves the paths of every provider. A script file is reloaded when it changes; an invalid file
leaves the current script in use.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from peripety.errors import PeripetyError, UnavailableError
from peripety.llmsim.script.files import load_script
from peripety.llmsim.server.app import ControlApi, SimulatorApp
from peripety.llmsim.server.connection import ProtocolFactory
from peripety.llmsim.server.routing import WIRES, Router

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from types import TracebackType

    from aiohttp import web

    from peripety.llmsim.simulator import Simulator


LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def serve_simulator(
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
    app = SimulatorApp(simulator, Router(WIRES), ControlApi(simulator, reload))
    protocols = ProtocolFactory(app.handle)
    try:
        async with accept_connections(protocols, host, port) as url:
            yield url
    finally:
        await protocols.shut_down(grace)


@asynccontextmanager
async def accept_connections(protocols: web.Server, host: str, port: int) -> AsyncIterator[str]:
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
        from peripety.core.config import describe_listen_error  # noqa: PLC0415 - loads pydantic

        raise UnavailableError(
            f"cannot listen on {host}:{port} ({describe_listen_error(error)}); choose another port",
            code="ADDRESS_UNAVAILABLE",
        ) from error
    try:
        yield _base_url(listener.sockets[0].getsockname())
    finally:
        listener.close()


class SimulatorServer:
    """A simulator served by a thread of its own.

    Attributes:
        url: the base URL.
    """

    def __init__(self, simulator: Simulator, host: str, port: int) -> None:
        self._listening: Future[str] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(simulator, host, port)),
            name="simulator",
            daemon=True,
        )
        self._thread.start()
        self.url = self._listening.result()

    async def _serve(self, simulator: Simulator, host: str, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            async with serve_simulator(simulator, host=host, port=port) as url:
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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def serve_in_thread(simulator: Simulator, *, host: str = LOOPBACK, port: int = 0) -> SimulatorServer:
    """Serve a simulator from a new thread until the result is closed. See `serve`."""
    return SimulatorServer(simulator, host, port)


def _base_url(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.25


class ScriptWatcher:
    """The script file of a simulator.

    Args:
        path: the file.
        simulator: the simulator.
    """

    def __init__(self, path: Path, simulator: Simulator) -> None:
        self._path = path
        self._simulator = simulator

    def reload(self) -> None:
        """Load the current content of the file.

        Raises:
            ScriptError: the file is not valid; the old script stays in use.
        """
        self._simulator.reload(load_script(self._path))
        _log.info("script reloaded", extra={"file": str(self._path)})

    def try_reload(self) -> None:
        """Load the current content of the file; log an error if it is not valid."""
        try:
            self.reload()
        except PeripetyError as error:
            _log.error("script not reloaded", extra={"file": str(self._path), "reason": str(error)})

    async def watch(self) -> None:
        """Reload after each change of the file, until cancelled. Waits for a file that is being written."""
        played = latest = self._file_stamp()
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            before, latest = latest, self._file_stamp()
            if latest is not None and latest == before != played:
                self.try_reload()
                played = latest

    def _file_stamp(self) -> tuple[int, int, int] | None:
        """Return a value that changes with the file; None while an editor replaces the file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
