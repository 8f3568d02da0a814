"""Server-sent events, as the providers write them."""

from __future__ import annotations

__all__ = ["comment", "event"]


def event(data: bytes, name: str | None = None, newline: bytes = b"\n") -> bytes:
    """One event.

    Args:
        data: its data, on one line.
        name: the event's name; None writes none.
        newline: what ends lines.
    """
    head = b"" if name is None else b"event: " + name.encode() + newline
    return head + b"data: " + data + newline + newline


def comment(text: str) -> bytes:
    """A line that readers ignore, which keeps the connection open."""
    return f": {text}\n\n".encode()
