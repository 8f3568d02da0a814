"""Stream framing: decoders that split the bytes of an answer into events, independent of network chunks.

There is one for server-sent events (SSE), and one for NDJSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from peripety.errors import UnavailableError

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Maximum size of an event, so that a broken server cannot exhaust the memory."""

T = TypeVar("T")


class StreamFraming(Enum):
    """Framings of streamed answers, by media type."""

    EVENTS = "text/event-stream"
    """Server-sent events."""
    LINES = "application/x-ndjson"
    """One event per line."""


class StreamDecoder(Protocol[T]):
    """Decoder of one answer, independent of network chunking."""

    def feed(self, chunk: bytes) -> list[T]:
        """Add bytes; return the events that they complete.

        Raises:
            UnavailableError: the bytes violate the framing, or an event is too large.
        """
        ...


def decode_line(line: bytes) -> str:
    """Return a line as text.

    Raises:
        UnavailableError: it is not UTF-8.
    """
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise UnavailableError("provider response is not UTF-8", code="STREAM_MALFORMED") from None


def check_event_size(size: int, limit: int) -> None:
    """Reject an event that has grown too large.

    Raises:
        UnavailableError: it is larger than `limit` bytes.
    """
    if size > limit:
        raise UnavailableError(f"provider event exceeds {limit} bytes", code="STREAM_MALFORMED")


class NdjsonDecoder:
    """Decoder of one stream: each line is a JSON document; blank lines only hold the connection open.

    A line is released when its line feed arrives; a truncated last line is never released.

    Args:
        max_event_bytes: the maximum size of a line.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()

    def feed(self, chunk: bytes) -> list[str]:
        """Add bytes; return the lines that they complete.

        Raises:
            UnavailableError: a line is not UTF-8, or it is too large.
        """
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._extend_line(end)
            if not self._line.isspace() and self._line:
                lines.append(decode_line(bytes(self._line)))
            self._line.clear()
        self._extend_line(rest)
        return lines

    def _extend_line(self, part: bytes) -> None:
        self._line += part
        check_event_size(len(self._line), self._max_event_bytes)


# Never `splitlines`: it also splits at U+2028 and others, which are plain text inside JSON.
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event: its type and the lines of its data, joined by line feeds."""

    event: str
    data: str


class SseDecoder:
    """Decoder of one stream, by the HTML standard, except that invalid UTF-8 is an error.

    An event is released when the blank line after it arrives; a truncated last event is never released.

    Args:
        max_event_bytes: the maximum size of an event.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._event = b""
        self._event_bytes = 0
        self._at_start = True
        self._ignore_line_feed = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Add bytes; return the events that they complete.

        Raises:
            UnavailableError: the stream is not UTF-8, or an event is too large.
        """
        if not chunk:
            return []
        if self._ignore_line_feed:
            # The preceding CR has already ended the line: waiting for a possible LF would delay the event.
            chunk = chunk.removeprefix(b"\n")
        self._ignore_line_feed = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(chunk) if b"\r" in chunk else chunk.split(b"\n")
        if lines:
            lines[0] = self._first_line(lines[0])
        events = self._events(lines)
        self._line += rest
        check_event_size(self._event_bytes + len(self._line), self._max_event_bytes)
        return events

    def _first_line(self, end: bytes) -> bytes:
        """Return the line whose beginning came with earlier chunks."""
        line = bytes(self._line) + end
        self._line.clear()
        if self._at_start:
            self._at_start = False
            return line.removeprefix(_BYTE_ORDER_MARK)
        return line

    def _events(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(self._dispatch())
                self._event = b""
                continue
            name, _, value = line.partition(b":")
            if name == b"data":
                self._event_bytes += len(line)
                self._data.append(value.removeprefix(b" "))
            elif name == b"event":
                self._event = value.removeprefix(b" ")
        return events

    def _dispatch(self) -> ServerSentEvent:
        check_event_size(self._event_bytes, self._max_event_bytes)
        event = ServerSentEvent(decode_line(self._event or b"message"), decode_line(b"\n".join(self._data)))
        self._data.clear()
        self._event_bytes = 0
        return event
