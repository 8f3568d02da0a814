"""Clients that cost less than the servers they measure: requests on many connections, and timed streams."""

from __future__ import annotations

import asyncio
import json
import selectors
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH = "/v1/chat/completions"
_SCHEDULED = 2  # which clock of a process: Linux makes its number from that and the process

TOKEN = b"tick"
"""Content that a timed stream repeats: a token of four bytes."""


def question(port: int, text: str, **extra: Any) -> bytes:
    """A request for a chat completion, as an SDK would send it."""
    body = json.dumps({"model": "gpt-6", "messages": [{"role": "user", "content": text}], **extra}).encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n"
        "Content-Type: application/json\r\nUser-Agent: OpenAI/Python\r\nAuthorization: Bearer test\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def ask(port: int, questions: Sequence[bytes], connections: int) -> float:
    """Send all questions over several connections, and return the duration in seconds.

    Raises:
        ValueError: an answer is not a success.
    """
    remaining = iter(questions)
    with selectors.DefaultSelector() as selector:
        for _ in range(connections):
            connected = socket.create_connection(("127.0.0.1", port))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connected, selectors.EVENT_READ, bytearray())
        started = time.perf_counter()
        busy = sum(_next(key.fileobj, remaining) for key in selector.get_map().values())
        while busy:
            for key, _ in selector.select():
                received: bytearray = key.data
                received += key.fileobj.recv(65536)  # type: ignore[union-attr]
                if _complete(received):
                    if not received.startswith(b"HTTP/1.1 200"):
                        raise ValueError(received.decode())
                    received.clear()
                    busy -= not _next(key.fileobj, remaining)
        seconds = time.perf_counter() - started
        for key in selector.get_map().values():
            key.fileobj.close()  # type: ignore[union-attr]
    return seconds


def _next(connected: Any, questions: Any) -> bool:
    """Send the next question, if there is one."""
    question = next(questions, None)
    if question is not None:
        connected.sendall(question)
    return question is not None


def _complete(received: bytearray) -> bool:
    head, separator, body = bytes(received).partition(b"\r\n\r\n")
    if not separator:
        return False
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"content-length" in fields:
        return len(body) >= int(fields[b"content-length"])
    return body.endswith(b"0\r\n\r\n")


class Stream(asyncio.Protocol):
    """One stream; notes when each of its tokens arrives."""

    def __init__(self) -> None:
        self.arrivals: list[float] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.arrivals += [now] * data.count(TOKEN)
        if data.endswith(b"0\r\n\r\n") and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionError("the stream was cut"))

    @property
    def seconds(self) -> float:
        """From the first token to the last."""
        return self.arrivals[-1] - self.arrivals[0]


async def stream(port: int, request: bytes, streams: int) -> list[Stream]:
    """Open streams, a millisecond apart, and read all of them to their ends."""
    loop = asyncio.get_running_loop()
    opened = []
    for _ in range(streams):
        transport, protocol = await loop.create_connection(Stream, "127.0.0.1", port)
        transport.write(request)
        opened.append((transport, protocol))
        await asyncio.sleep(0.001)
    await asyncio.gather(*(protocol.ended for _, protocol in opened))
    for transport, _ in opened:
        transport.close()
    return [protocol for _, protocol in opened]


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, all its threads included, those that have ended too."""
    return time.clock_gettime((~pid << 3) | _SCHEDULED)
