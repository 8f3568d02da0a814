"""NDJSON decoder: bytes in, lines out, independent of network chunking."""

from __future__ import annotations

from peripety.gateway.providers.framing import MAX_EVENT_BYTES, decoded, require_size

__all__ = ["NdjsonDecoder"]


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
                lines.append(decoded(bytes(self._line)))
            self._line.clear()
        self._extend_line(rest)
        return lines

    def _extend_line(self, part: bytes) -> None:
        self._line += part
        require_size(len(self._line), self._max_event_bytes)
