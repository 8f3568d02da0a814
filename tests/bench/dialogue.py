"""Connections that send one question after the other, over HTTP and over gRPC, for little CPU time.

A library's client costs as much as the servers that are compared here. These connections send prepared bytes
and parse only the end of an answer. Counting the tokens shows that the answer is complete.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TOKEN = b"tick"
"""Prefix of each token of an answer."""


class Speaker(Protocol):
    """The client's end of one connection."""

    opening: bytes
    """Bytes sent before the first question."""

    def ask(self, question: bytes) -> bytes:
        """Return the bytes that send a question."""
        ...

    def hear(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Process received bytes; return the bytes to send back, and the answer if it is complete."""
        ...


class HttpSpeaker:
    """HTTP/1.1; a question is a whole request."""

    opening = b""

    def __init__(self) -> None:
        self._received = bytearray()

    def ask(self, question: bytes) -> bytes:
        return question

    def hear(self, data: bytes) -> tuple[bytes, bytes | None]:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator or not _is_whole(head.lower(), body):
            return b"", None
        answer = bytes(self._received)
        self._received.clear()
        return b"", answer


def _is_whole(head: bytearray, body: bytearray) -> bool:
    _, told, length = head.partition(b"\r\ncontent-length: ")
    return len(body) >= int(length.split(b"\r\n")[0]) if told else body.endswith(b"0\r\n\r\n")


class GrpcSpeaker:
    """gRPC over plain HTTP/2, one stream after the other; a question is a message.

    Args:
        path: of the method.
    """

    opening = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        b"\x00\x00\x06\x04\x00\x00\x00\x00\x00"  # SETTINGS: a stream may send ...
        b"\x00\x04\x3f\xff\xff\xff"  # ... so much before it is given more
        b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x3f\xff\xff\xff"  # and so may the connection
    )
    _DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
    _END_STREAM, _ACK = 1, 1

    def __init__(self, path: str) -> None:
        fields = [b"\x83\x86", _field(b"\x04", path), _field(b"\x01", "127.0.0.1")]  # POST, http, path, host
        named = {"te": "trailers", "content-type": "application/grpc", "grpc-timeout": "120S"}
        fields += [_field(b"\x00" + _text(name), value) for name, value in named.items()]
        self._head = b"".join(fields)
        self._stream = -1
        self._received = b""
        self._answer = bytearray()

    def ask(self, question: bytes) -> bytes:
        self._stream += 2
        message = b"\x00" + len(question).to_bytes(4, "big") + question
        return _frame(self._HEADERS, 4, self._stream, self._head) + _frame(0, 1, self._stream, message)

    def hear(self, data: bytes) -> tuple[bytes, bytes | None]:
        said, answer = b"", None
        for kind, flags, payload in self._frames(data):
            if kind == self._DATA:
                self._answer += payload
            else:
                said += self._reply(kind, flags, payload)
            if kind in {self._DATA, self._HEADERS} and flags & self._END_STREAM:
                answer = bytes(self._answer)
                self._answer.clear()
        return said, answer

    def _reply(self, kind: int, flags: int, payload: bytes) -> bytes:
        """Return the reply to a frame that holds no data."""
        if kind in {self._RESET, self._GOAWAY}:
            code = int.from_bytes(payload[-4:] if kind == self._RESET else payload[4:8], "big")
            ended = "the stream" if kind == self._RESET else "the connection"
            raise ConnectionError(f"the server ended {ended}, with the HTTP/2 error {code}")
        if kind in {self._SETTINGS, self._PING} and not flags & self._ACK:
            return _frame(kind, self._ACK, 0, payload if kind == self._PING else b"")
        return b""

    def _frames(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        received, start = self._received + data, 0
        while len(received) >= start + 9:
            end = start + 9 + int.from_bytes(received[start : start + 3], "big")
            if len(received) < end:
                break
            yield received[start + 3], received[start + 4], received[start + 9 : end]
            start = end
        self._received = received[start:]


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _text(value: str) -> bytes:
    return bytes((len(value),)) + value.encode()


def _field(name: bytes, value: str) -> bytes:
    return name + _text(value)


@dataclass
class Heard:
    """Result of some questions.

    Attributes:
        waits: seconds from each question to the end of its answer.
        seconds: duration of the whole measurement.
        hung_up: number of connections that ended before the answer did.
    """

    waits: list[float] = field(default_factory=list)
    seconds: float = 0.0
    hung_up: int = 0


def converse(
    port: int,
    speaker: Callable[[], Speaker],
    connections: int,
    questions: Iterable[bytes],
    tokens: int,
) -> Heard:
    """Send the questions over several connections at once; the first question of each is not counted.

    Raises:
        ValueError: an answer has fewer tokens than it should.
    """
    remaining = iter(questions)
    with selectors.DefaultSelector() as selector:
        ends = [_End(port, speaker, selector) for _ in range(connections)]
        _ask_all(selector, ends, islice(remaining, connections), tokens)
        heard = _ask_all(selector, ends, remaining, tokens)
        for end in ends:
            end.socket.close()
    return heard


class _End:
    def __init__(self, port: int, speaker: Callable[[], Speaker], selector: selectors.BaseSelector) -> None:
        self._port = port
        self._new_speaker = speaker
        self._selector = selector
        self.asked = 0.0
        self.open()

    def open(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self._port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.speaker = self._new_speaker()
        self.socket.sendall(self.speaker.opening)
        self._selector.register(self.socket, selectors.EVENT_READ, self)

    def reopen(self) -> None:
        self._selector.unregister(self.socket)
        self.socket.close()
        self.open()

    def ask(self, question: bytes) -> None:
        self.asked = time.perf_counter()
        self.socket.sendall(self.speaker.ask(question))

    def hear(self) -> bytes | None:
        data = self.socket.recv(262_144)
        if not data:
            raise ConnectionError("the server hung up")
        reply, answer = self.speaker.hear(data)
        if reply:
            self.socket.sendall(reply)
        return answer


def _ask_all(
    selector: selectors.BaseSelector,
    ends: list[_End],
    questions: Iterator[bytes],
    tokens: int,
) -> Heard:
    heard = Heard()
    started = time.perf_counter()
    idle, busy = deque(ends), 0
    while True:
        while idle and (question := next(questions, None)) is not None:
            idle.popleft().ask(question)
            busy += 1
        if not busy:
            break
        for key, _ in selector.select():
            end: _End = key.data
            try:
                answer = end.hear()
            except ConnectionError:
                heard.hung_up += 1
                end.reopen()
            else:
                if answer is None:
                    continue
                heard.waits.append(time.perf_counter() - end.asked)
                _require(answer, tokens)
            idle.append(end)
            busy -= 1
    heard.seconds = time.perf_counter() - started
    return heard


def _require(answer: bytes, tokens: int) -> None:
    if answer.count(TOKEN) < tokens:
        raise ValueError(answer[:2000].decode(errors="replace"))
