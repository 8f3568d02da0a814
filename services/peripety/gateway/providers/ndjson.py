"""Newline-delimited JSON: bytes in, objects out, whatever the chunking of the network."""

from __future__ import annotations

from typing import Any

import jiter

from peripety.errors import UnavailableError
from peripety.gateway.providers.framing import MAX_EVENT_BYTES, require_size

__all__ = ["NdjsonDecoder"]


class NdjsonDecoder:
    """Decodes one stream: each line is a JSON object; lines of blanks keep a connection alive.

    An object is handed out as soon as the line feed after it has been seen; one that the end of the
    stream cuts off is never handed out.

    Args:
        max_event_bytes: the largest line that is taken.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Take the next bytes and return the objects they complete.

        Raises:
            UnavailableError: a line is not a JSON object, or it is too large.
        """
        *lines, rest = chunk.split(b"\n")
        objects = []
        for line in lines:
            self._extend_line(line)
            if not self._line.isspace() and self._line:
                objects.append(_object(bytes(self._line)))
            self._line.clear()
        self._extend_line(rest)
        return objects

    def _extend_line(self, part: bytes) -> None:
        self._line += part
        require_size(len(self._line), self._max_event_bytes)


def _object(line: bytes) -> dict[str, Any]:
    try:
        document = jiter.from_json(line)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnavailableError(
            "The provider's stream cannot be read: a line is not a JSON object", code="STREAM_MALFORMED"
        )
    return document
