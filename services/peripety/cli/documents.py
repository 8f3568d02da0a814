"""Specifications from files and standard input: one JSON document, or one on each line."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from peripety import sim
from peripety.cli.text import MAX_INPUT_BYTES
from peripety.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STDIN", "Document", "documents", "opened", "read_document"]

STDIN = "-"
_LINES = {".jsonl", ".ndjson"}


@dataclass(frozen=True)
class Document:
    """One document and where it was found.

    Attributes:
        source: the file's name; `-` is standard input.
        line: its line in a file of JSON Lines; None when it is the whole file.
        content: its bytes, cut shortly after the engine's size limit, so that the engine refuses it.
    """

    source: str
    line: int | None
    content: bytes


@contextmanager
def opened(source: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for `-`."""
    if source == STDIN:
        yield sys.stdin.buffer
    else:
        with Path(source).open("rb") as file:
            yield file


def read_document(source: str) -> bytes:
    """Read a file that holds one document."""
    with opened(source) as file:
        return file.read(MAX_INPUT_BYTES + 1)


def documents(source: str, file: IO[bytes]) -> Iterator[Document]:
    """Yield the documents of an open file, reading no further than asked.

    A name says what the file is. Where it does not, the file is JSON Lines when its first line is JSON by
    itself and another line follows.
    """
    first, second = (_next_line(file) for _ in range(2))
    if Path(source).suffix in _LINES or (
        Path(source).suffix != ".json" and second.strip() and _is_json(first)
    ):
        yield from _lines(source, chain([first, second], iter(lambda: _next_line(file), b"")))
    else:
        yield Document(source, None, (first + second + file.read(MAX_INPUT_BYTES))[: MAX_INPUT_BYTES + 1])


def _lines(source: str, lines: Iterator[bytes]) -> Iterator[Document]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield Document(source, number, line)


def _next_line(file: IO[bytes]) -> bytes:
    """Read a line; of one that is too long only the beginning is kept."""
    line = file.readline(MAX_INPUT_BYTES + 1)
    rest = line
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(MAX_INPUT_BYTES + 1)
    return line


def _is_json(text: bytes) -> bool:
    try:
        sim.parse(text)
    except SpecError:
        return False
    return True
