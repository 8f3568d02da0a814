"""SSE decoder (server-sent events): bytes in, events out, independent of network chunking."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peripety.gateway.providers.framing import MAX_EVENT_BYTES, decoded, require_size

__all__ = ["ServerSentEvent", "SseDecoder"]

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
        self._skip_line_feed = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Add bytes; return the events that they complete.

        Raises:
            UnavailableError: the stream is not UTF-8, or an event is too large.
        """
        if not chunk:
            return []
        if self._skip_line_feed:
            # The preceding CR has already ended the line: waiting for a possible LF would delay the event.
            chunk = chunk.removeprefix(b"\n")
        self._skip_line_feed = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(chunk) if b"\r" in chunk else chunk.split(b"\n")
        if lines:
            lines[0] = self._first_line(lines[0])
        events = self._events(lines)
        self._line += rest
        require_size(self._event_bytes + len(self._line), self._max_event_bytes)
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
        require_size(self._event_bytes, self._max_event_bytes)
        event = ServerSentEvent(decoded(self._event or b"message"), decoded(b"\n".join(self._data)))
        self._data.clear()
        self._event_bytes = 0
        return event
