"""Bounded reading of lines from untrusted files."""

from __future__ import annotations

from typing import IO

__all__ = ["next_line"]


def next_line(file: IO[bytes], most: int) -> bytes:
    """Read the next line of a file, truncated to a maximum length; empty at the end of the file."""
    line = rest = file.readline(most)
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(most)
    return line
