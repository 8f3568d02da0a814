"""Server-sent events: bytes in, events out, whatever the chunking of the network."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peripety.gateway.providers.framing import MAX_EVENT_BYTES, decoded, require_size

__all__ = ["ServerSentEvent", "SseDecoder"]

# Never `str.splitlines`: it also splits at U+2028 and others, which are plain text inside JSON.
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event: its type and the lines of its data, joined by line feeds."""

    event: str
    data: str


class SseDecoder:
    """Decodes one stream, as the HTML standard says, except that invalid UTF-8 is an error.

    An event is handed out as soon as the blank line after it has been seen; one that the end of the
    stream cuts off is never handed out.

    Args:
        max_event_bytes: the largest event that is taken.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()
        self._data: list[str] = []
        self._event = ""
        self._event_bytes = 0
        self._at_start = True
        self._skip_line_feed = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events they complete.

        Raises:
            UnavailableError: the stream is not UTF-8, or an event is too large.
        """
        if not chunk:
            return []
        if self._skip_line_feed:
            # The CR before it has ended the line already: waiting for a possible LF would delay the event.
            chunk = chunk.removeprefix(b"\n")
        self._skip_line_feed = chunk.endswith(b"\r")
        return self._split(chunk)

    def _split(self, chunk: bytes) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        start = 0
        for end in _LINE_END.finditer(chunk):
            self._extend_line(chunk[start : end.start()])
            start = end.end()
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._extend_line(chunk[start:])
        return events

    def _extend_line(self, part: bytes) -> None:
        self._line += part
        require_size(self._event_bytes + len(self._line), self._max_event_bytes)

    def _end_line(self) -> ServerSentEvent | None:
        line = self._take_line()
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        return None

    def _take_line(self) -> str:
        line = bytes(self._line)
        self._line.clear()
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line.startswith(b":"):
            self._event_bytes += len(line)
        return decoded(line)

    def _dispatch(self) -> ServerSentEvent | None:
        event = ServerSentEvent(self._event or "message", "\n".join(self._data)) if self._data else None
        self._data.clear()
        self._event = ""
        self._event_bytes = 0
        return event
