"""Specifications from files and standard input: one JSON document, or JSON Lines."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from peripety import sim
from peripety.cli.text import MAX_INPUT_BYTES, printable
from peripety.errors import Finding, InvalidArgumentError, SpecError
from peripety.lines import next_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "STDIN",
    "TOO_LARGE",
    "Document",
    "documents",
    "opened",
    "read_document",
    "read_documents",
    "read_specification",
    "size_of",
]

STDIN = "-"
TOO_LARGE = Finding("DOCUMENT_TOO_LARGE", "", f"the document exceeds the limit of {MAX_INPUT_BYTES} bytes")
"""The finding for a document that exceeds the size limit and is therefore not read to its end."""

_LINES = {".jsonl", ".ndjson"}


@dataclass(frozen=True)
class Document:
    """A document and its source.

    Attributes:
        source: the file name; `-` is standard input.
        line: the line in a file of JSON Lines; None if the document is the whole file.
        content: the bytes; only the beginning if the document is too large.
    """

    source: str
    line: int | None
    content: bytes

    @property
    def too_large(self) -> bool:
        """True if the document exceeds the size limit of the engine."""
        return len(self.content) > MAX_INPUT_BYTES


def read_document(source: str) -> Document:
    """Read a file that holds one document, or standard input for `-`.

    Raises:
        InvalidArgumentError: the file cannot be read.
    """
    with opened(source) as file:
        return Document(source, None, file.read(MAX_INPUT_BYTES + 1))


def read_specification(source: str) -> bytes:
    """Read a file that holds one specification, or standard input for `-`.

    Raises:
        InvalidArgumentError: the file cannot be read, or standard input is empty.
        SpecError: the specification exceeds the size limit of the engine.
    """
    document = read_document(source)
    if source == STDIN and not document.content:
        raise InvalidArgumentError(
            "standard input is empty; the command before this one may have failed", code="UNREADABLE"
        )
    if document.too_large:
        raise SpecError("the specification is too large", [TOO_LARGE])
    return document.content


def read_documents(source: str) -> Iterator[Document]:
    """Yield the documents of a file, or of standard input for `-`. Reads lazily.

    Raises:
        InvalidArgumentError: the file cannot be read.
    """
    with opened(source) as file:
        yield from documents(source, file)


def documents(source: str, file: IO[bytes]) -> Iterator[Document]:
    """Yield the documents of an open file. Reads lazily.

    The suffix of the name determines the format. Without a known suffix, the file is JSON Lines if its first
    line
    is a complete JSON document and another line follows.
    """
    first, second = (_next_line(file) for _ in range(2))
    if Path(source).suffix in _LINES or (
        Path(source).suffix != ".json" and second.strip() and _is_json(first)
    ):
        yield from _lines(source, chain([first, second], iter(lambda: _next_line(file), b"")))
    else:
        yield Document(source, None, (first + second + file.read(MAX_INPUT_BYTES))[: MAX_INPUT_BYTES + 1])


def size_of(source: str) -> int | None:
    """Return the size of a file in bytes; None if it is unknown."""
    return None if source == STDIN else Path(source).stat().st_size


@contextmanager
def opened(source: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for `-`.

    Raises:
        InvalidArgumentError: the file cannot be read.
    """
    try:
        if source == STDIN:
            yield _standard_input()
        else:
            with Path(source).open("rb") as file:
                yield file
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot read {printable(source)}: {error.strerror}", code="UNREADABLE"
        ) from None


def _standard_input() -> IO[bytes]:
    """Return a duplicate of standard input, for a thread that may still block on it when the process ends.

    Python closes its own stdin object at exit, which aborts the process if a thread is reading from it.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:
        return sys.stdin.buffer  # not a file


def _lines(source: str, lines: Iterator[bytes]) -> Iterator[Document]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield Document(source, number, line)


def _next_line(file: IO[bytes]) -> bytes:
    """Read a line, at most up to the size limit."""
    return next_line(file, MAX_INPUT_BYTES + 1)


def _is_json(text: bytes) -> bool:
    try:
        sim.parse(text)
    except SpecError:
        return False
    return True
