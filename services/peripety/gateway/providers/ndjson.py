"""Newline-delimited JSON: bytes in, lines out, whatever the chunking of the network."""

from __future__ import annotations

from peripety.gateway.providers.framing import MAX_EVENT_BYTES, decoded, require_size

__all__ = ["NdjsonDecoder"]


class NdjsonDecoder:
    """Decodes one stream: each line is a JSON document; lines of blanks keep a connection alive.

    A line is handed out as soon as the line feed after it has been seen; one that the end of the stream
    cuts off is never handed out.

    Args:
        max_event_bytes: the largest line that is taken.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()

    def feed(self, chunk: bytes) -> list[str]:
        """Take the next bytes and return the lines they complete.

        Raises:
            UnavailableError: a line is not UTF-8, or it is too large.
        """
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._extend_line(end)
            if not self._line.isspace() and self._line:
                lines.append(decoded(bytes(self._line)))
            self._line.clear()
        self._extend_line(rest)
        return lines

    def _extend_line(self, part: bytes) -> None:
        self._line += part
        require_size(len(self._line), self._max_event_bytes)
