"""A provider that answers at once: Chat Completions, whole or as a stream, for next to no CPU time.

`PYTHONPATH=tests python -m bench.instant` serves on a free port and prints it. An answer has as many tokens
as the request allows (`max_tokens`, default 1), each in an event and a chunk of its own. All are written
together, unless the request contains `SLOWLY`: then one every two milliseconds. The rest of the request is
ignored, so that the client dominates the measurement.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from bench.dialogue import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOWLY = "slowly"
_PAUSE_SECONDS = 0.002
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_TOKENS = re.compile(rb'"max_(?:completion_)?tokens": ?(\d+)')
_STREAM = re.compile(rb'"stream": ?true')


@contextmanager
def answering_at_once() -> Iterator[tuple[int, int]]:
    """Serve in a process of its own, and give its number and its port."""
    process = subprocess.Popen([sys.executable, "-m", "bench.instant"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=30)


class _Connection(asyncio.Protocol):
    """One connection; requests come one after the other, as every client sends them."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = _LENGTH.search(head)
        if len(body) < int(length[1] if length else 0):
            return
        self._received = b""
        tokens = _TOKENS.search(body)
        answer = _stream if _STREAM.search(body) else _whole
        pieces = answer(int(tokens[1]) if tokens else 1)
        if SLOWLY.encode() in body:
            self._say(iter(pieces), asyncio.get_running_loop().time())
        else:
            self._write(b"".join(pieces))

    def _say(self, pieces: Iterator[bytes], due: float) -> None:
        piece = next(pieces, None)
        if piece is not None:
            self._write(piece)
            due += _PAUSE_SECONDS
            asyncio.get_running_loop().call_at(due, self._say, pieces, due)

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)


@cache
def _stream(tokens: int) -> tuple[bytes, ...]:
    choices: list[dict[str, Any]] = [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
    choices += [{"delta": {"content": token}, "finish_reason": None} for token in _tokens(tokens)]
    choices += [{"delta": {}, "finish_reason": "stop"}]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, **choice}]} for choice in choices]
    chunks += [{"choices": [], "usage": _usage(tokens)}]
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [f"data: {json.dumps(about | chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
    framed = [f"{len(event):x}\r\n".encode() + event + b"\r\n" for event in events]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return (head + framed[0], *framed[1:-1], framed[-1] + b"0\r\n\r\n")


@cache
def _whole(tokens: int) -> tuple[bytes, ...]:
    message = {"role": "assistant", "content": "".join(_tokens(tokens))}
    document = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": _usage(tokens),
    }
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head.encode() + body,)


def _tokens(number: int) -> list[str]:
    """So many, no two alike: a gateway may take many equal ones for a fault."""
    return [f"{TOKEN.decode()}{index} " for index in range(number)]


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - how it is found
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
