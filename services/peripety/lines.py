"""Lines of files that anybody may have written."""

from __future__ import annotations

from typing import IO

__all__ = ["next_line"]


def next_line(file: IO[bytes], most: int) -> bytes:
    """The next line of a file; of one that is longer than so many bytes only these, which then end it.

    Empty at the end of the file.
    """
    line = rest = file.readline(most)
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(most)
    return line
