"""Server-sent events in the format of the providers."""

from __future__ import annotations

__all__ = ["comment", "event"]


def event(data: bytes, name: str | None = None, newline: bytes = b"\n") -> bytes:
    """Return one event.

    Args:
        data: its data, on one line.
        name: the event name; None for no name.
        newline: the line ending.
    """
    head = b"" if name is None else b"event: " + name.encode() + newline
    return head + b"data: " + data + newline + newline


def comment(text: str) -> bytes:
    """Return a comment line, which clients ignore and which prevents idle timeouts."""
    return f": {text}\n\n".encode()
