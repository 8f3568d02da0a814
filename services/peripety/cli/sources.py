"""Specifications named on the command line: files of any format, folders, standard input."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from peripety.cli.documents import STDIN, TOO_LARGE, read_documents
from peripety.cli.text import printable
from peripety.errors import InvalidArgumentError
from peripety.scenarios.batch import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.scenarios.batch import Document

__all__ = ["Place", "bytes_in", "specifications"]

_PARQUET = ".parquet"
_SUFFIXES = (".json", ".jsonl", ".ndjson", _PARQUET)


class Place(NamedTuple):
    """Location of a specification.

    Attributes:
        source: the file; `-` is standard input.
        line: its line or row, from 1; None if it is the whole file.
        size: its approximate share of the source, in bytes.
        id: its id in the file.
    """

    source: str
    line: int | None = None
    size: float = 0.0
    id: str | None = None

    def __str__(self) -> str:
        return printable(self.source if self.line is None else f"{self.source}:{self.line}")


def specifications(sources: Sequence[str]) -> Iterator[Document[Place]]:
    """Yield the specifications of files and folders; for an unreadable source, an error document."""
    for source in sources:
        is_empty = True
        for document in _in(source):
            is_empty = False
            yield document
        if is_empty and Path(source).is_dir():
            reason = f"cannot read {printable(source)}: the folder has no {', '.join(_SUFFIXES)} file"
            yield _unreadable(source, InvalidArgumentError(reason, code="UNREADABLE"))


def bytes_in(sources: Sequence[str]) -> int | None:
    """Return the number of bytes to read; None if it is unknown."""
    if STDIN in sources:
        return None
    return sum(_size(file) for source in sources for file in _files(source) if isinstance(file, str))


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def _in(source: str) -> Iterator[Document[Place]]:
    for file in _files(source):
        if isinstance(file, str):
            yield from _in_file(file)
        else:
            yield file


def _files(source: str) -> Iterator[str | Document[Place]]:
    """Yield the file itself, or the files of a folder lazily: a folder may have millions.

    For a folder that cannot be read, yields an error document.
    """
    if source == STDIN or not Path(source).is_dir():
        yield source
        return
    try:
        with os.scandir(source) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path)
                elif entry.name.endswith(_SUFFIXES):
                    yield entry.path
    except OSError as error:
        yield _unreadable(source, _not_read(source, error))


def _in_file(file: str) -> Iterator[Document[Place]]:
    try:
        if file.endswith(_PARQUET):
            from peripety.cli.parquet import rows  # noqa: PLC0415 - an extra, and slow to load

            for number, row in enumerate(rows(file), start=1):
                yield Place(file, number, row.size, row.id), row.spec
            return
        for document in read_documents(file):
            content = Verdict((TOO_LARGE,), 1) if document.too_large else document.content
            yield Place(file, document.line, len(document.content)), content
    except InvalidArgumentError as error:
        yield _unreadable(file, error)
    except OSError as error:
        yield _unreadable(file, _not_read(file, error))


def _not_read(source: str, error: OSError) -> InvalidArgumentError:
    return InvalidArgumentError(f"cannot read {printable(source)}: {error.strerror}", code="UNREADABLE")


def _unreadable(source: str, error: InvalidArgumentError) -> Document[Place]:
    return Place(source), Verdict(error=error)
