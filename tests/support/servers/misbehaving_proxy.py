"""TCP proxy that breaks gRPC connections on purpose, for the tests of clients in every language.

`PYTHONPATH=tests python -m support.servers.misbehaving_proxy HOST:PORT` prints `listening on HOST:PORT` and
reads commands from standard input, one a line. It answers each with `ok`, and `state` with `armed` or
`triggered`.

| command | effect |
| --- | --- |
| `cut N` | ends the connection after N more bytes from the server, once |
| `cut_request N` | ends the connection after N more bytes from the client, once |
| `freeze N` | forwards nothing after N more bytes from the server, and leaves the connection open, once |
| `goaway N` | inserts a graceful GOAWAY after N more frames from the server, once |
| `refuse N` | inserts a GOAWAY that refuses every stream, and ends the connection, once |
| `duplicate` | sends each DATA frame twice |
| `delay S` | waits S seconds before each frame |
| `trickle` | sends each byte alone |
| `clear` | behaves well from now on |
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_HEADER, _DATA, _GOAWAY, _EVERY_STREAM = 9, 0, 7, 0x7FFFFFFF
_ONCE = {"cut", "cut_request", "freeze", "goaway", "refuse"}
_OF_BYTES = {"cut", "cut_request", "freeze", "delay", "trickle"}
FAULTS = {*_ONCE, *_OF_BYTES, "duplicate"}


class MisbehavingProxy:
    """Proxy in front of one server. It behaves well until a fault is armed.

    Args:
        upstream: `host:port` of the server.
        has_frames: True for HTTP/2. Over HTTP/1.1, the faults that name frames cannot be armed.
    """

    def __init__(self, upstream: str, *, has_frames: bool = True) -> None:
        self._host, _, port = upstream.rpartition(":")
        self._has_frames = has_frames
        self._port = int(port)
        self._fault, self._amount = "", 0.0
        self._ways = set[asyncio.Task[None]]()
        self._connections = set[asyncio.Task[Any]]()
        self.address = ""

    def arm(self, fault: str, amount: float = 0) -> None:
        """Cause a fault from now on; see the table of the module. An empty name clears it."""
        assert not fault or fault in (FAULTS if self._has_frames else _OF_BYTES), fault
        self._fault, self._amount = fault, amount

    @property
    def is_armed(self) -> bool:
        """True until a fault that happens once has happened."""
        return bool(self._fault)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[MisbehavingProxy]:
        """Listen on a free port until the block ends."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for way in self._ways:
                way.cancel()
            await asyncio.gather(*self._connections)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        server, to_server = await asyncio.open_connection(self._host, self._port)
        ways = [
            asyncio.create_task(self._answers(server, to_client)),
            asyncio.create_task(self._requests(client, to_server)),
        ]
        self._ways.update(ways)
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        self._ways.difference_update(ways)
        for writer in (to_client, to_server):
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _requests(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while data := await client.read(65_536):
            if self._fault == "cut_request" and self._counts_down(len(data)):
                to_server.write(data[: len(data) + int(self._amount)])
                return
            to_server.write(data)
            await to_server.drain()

    async def _answers(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        buffered = bytearray()
        while data := await server.read(65_536):
            buffered += data
            for frame in _take_frames(buffered) if self._has_frames else [data]:
                if not await self._forward(frame, to_client):
                    return

    async def _forward(self, frame: bytes, to_client: asyncio.StreamWriter) -> bool:
        """Forward a frame with the armed fault, and return False if the connection ends."""
        fault = self._fault
        if fault in {"cut", "freeze"} and self._counts_down(len(frame)):
            to_client.write(frame[: len(frame) + int(self._amount)])
            if fault == "freeze":
                await asyncio.Event().wait()
            return False
        if fault in {"goaway", "refuse"} and self._counts_down(1):
            last = _EVERY_STREAM if fault == "goaway" else 0
            to_client.write(frame + _frame(_GOAWAY, last.to_bytes(4, "big") + bytes(4)))
            return fault == "goaway"
        if fault == "delay":
            await asyncio.sleep(self._amount)
        pieces = [bytes([byte]) for byte in frame] if fault == "trickle" else [frame]
        for piece in pieces * (2 if fault == "duplicate" and frame[3] == _DATA else 1):
            to_client.write(piece)
            await to_client.drain()
            if fault == "trickle":
                await asyncio.sleep(0)
        return True

    def _counts_down(self, step: int) -> bool:
        """Return True if the fault happens within this step; then the amount is at most 0."""
        self._amount -= step
        if self._amount > 0:
            return False
        self._fault = ""
        return True


def _frame(kind: int, payload: bytes) -> bytes:
    """Return an HTTP/2 frame of the connection itself."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + bytes(4) + payload


def _take_frames(buffered: bytearray) -> Iterator[bytes]:
    """Yield the complete HTTP/2 frames of a buffer, and remove them from it."""
    while len(buffered) >= _HEADER:
        size = _HEADER + int.from_bytes(buffered[:3], "big")
        if len(buffered) < size:
            return
        yield bytes(buffered[:size])
        del buffered[:size]


async def _obey(upstream: str) -> None:
    """Serve, and carry out the commands of standard input until it ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with MisbehavingProxy(upstream).listening() as proxy:
        print(f"listening on {proxy.address}", flush=True)  # noqa: T201 - the protocol of this program
        while line := (await reader.readline()).decode().split():
            if line[0] != "state":
                proxy.arm("" if line[0] == "clear" else line[0], *map(float, line[1:]))
            answer = ("armed" if proxy.is_armed else "triggered") if line[0] == "state" else "ok"
            print(answer, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(_obey(sys.argv[1]))
