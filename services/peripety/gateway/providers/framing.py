"""What cuts the bytes of an answer into its events."""

from __future__ import annotations

from enum import Enum
from typing import Protocol, TypeVar

from peripety.errors import UnavailableError

__all__ = ["MAX_EVENT_BYTES", "Decoder", "Framing", "decoded", "require_size"]

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""The largest event that is taken, so that a broken server cannot fill the memory."""

T = TypeVar("T")


class Framing(Enum):
    """The ways in which providers cut an answer into events, by their media types."""

    EVENTS = "text/event-stream"
    """Server-sent events."""
    LINES = "application/x-ndjson"
    """Each line is one."""


class Decoder(Protocol[T]):
    """Decodes one answer, whatever the chunking of the network."""

    def feed(self, chunk: bytes) -> list[T]:
        """Take the next bytes and return the events they complete.

        Raises:
            UnavailableError: the bytes are none of this framing, or an event is too large.
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
        raise UnavailableError(
            "The provider sent bytes that are not UTF-8", code="STREAM_MALFORMED"
        ) from None


def require_size(size: int, limit: int) -> None:
    """Refuse an event that has grown too large.

    Raises:
        UnavailableError: it is larger than `limit` bytes.
    """
    if size > limit:
        raise UnavailableError(
            f"The provider sent an event of more than {limit} bytes", code="STREAM_MALFORMED"
        )
