"""Stream framing: interface of the decoders that split the bytes of an answer into events."""

from __future__ import annotations

from enum import Enum
from typing import Protocol, TypeVar

from peripety.errors import UnavailableError

__all__ = ["MAX_EVENT_BYTES", "Decoder", "Framing", "decoded", "require_size"]

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Maximum size of an event, so that a broken server cannot exhaust the memory."""

T = TypeVar("T")


class Framing(Enum):
    """Framings of streamed answers, by media type."""

    EVENTS = "text/event-stream"
    """Server-sent events."""
    LINES = "application/x-ndjson"
    """One event per line."""


class Decoder(Protocol[T]):
    """Decoder of one answer, independent of network chunking."""

    def feed(self, chunk: bytes) -> list[T]:
        """Add bytes; return the events that they complete.

        Raises:
            UnavailableError: the bytes violate the framing, or an event is too large.
        """
        ...


def decoded(line: bytes) -> str:
    """Return a line as text.

    Raises:
        UnavailableError: it is not UTF-8.
    """
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise UnavailableError("provider response is not UTF-8", code="STREAM_MALFORMED") from None


def require_size(size: int, limit: int) -> None:
    """Reject an event that has grown too large.

    Raises:
        UnavailableError: it is larger than `limit` bytes.
    """
    if size > limit:
        raise UnavailableError(f"provider event exceeds {limit} bytes", code="STREAM_MALFORMED")
