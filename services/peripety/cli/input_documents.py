"""Input documents of commands: specifications from files, folders, standard input and Parquet.

A file holds one JSON document, or JSON Lines.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from peripety import engine
from peripety.cli.output import MAX_INPUT_BYTES, printable, show_lines_of
from peripety.core.text_files import read_bounded_line
from peripety.errors import Finding, InvalidArgumentError, SpecError
from peripety.scenario.batch import DocumentVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.scenario.batch import Document


STDIN = "-"
TOO_LARGE = Finding("DOCUMENT_TOO_LARGE", "", f"the document exceeds the limit of {MAX_INPUT_BYTES} bytes")
"""The finding for a document that exceeds the size limit and is therefore not read to its end."""

_LINES = {".jsonl", ".ndjson"}
_YAML = {".yaml", ".yml"}


@dataclass(frozen=True)
class InputDocument:
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
    def is_too_large(self) -> bool:
        """True if the document exceeds the size limit of the engine."""
        return len(self.content) > MAX_INPUT_BYTES


def read_document(source: str) -> InputDocument:
    """Read a file that holds one document, or standard input for `-`.

    Raises:
        InvalidArgumentError: the file cannot be read.
    """
    with open_input(source) as file:
        return InputDocument(source, None, file.read(MAX_INPUT_BYTES + 1))


def read_specification(source: str) -> bytes:
    """Read a file that holds one specification, or standard input for `-`.

    Errors of this process about the specification then name the lines of the file.

    Raises:
        InvalidArgumentError: the file is YAML or cannot be read, or standard input is empty.
        SpecError: the specification exceeds the size limit of the engine.
    """
    _refuse_yaml(source)
    document = read_document(source)
    if source == STDIN and not document.content:
        raise InvalidArgumentError(
            "standard input is empty; the command before this one may have failed",
            code="UNREADABLE",
        )
    if document.is_too_large:
        raise SpecError("the specification is too large", [TOO_LARGE])
    show_lines_of(document.content)
    return document.content


def _refuse_yaml(source: str) -> None:
    if Path(source).suffix.lower() in _YAML:
        target = Path(source).with_suffix(".json")
        raise InvalidArgumentError(
            f"cannot read {printable(source)}: it is YAML, and specifications are JSON; convert it,"
            f" for example with `yq -o json {printable(source)} > {printable(str(target))}`."
            " `peripety schema` gives an editor completion for the JSON",
            code="UNREADABLE",
        )


def read_documents(source: str) -> Iterator[InputDocument]:
    """Yield the documents of a file, or of standard input for `-`. Reads lazily.

    Raises:
        InvalidArgumentError: the file cannot be read.
    """
    with open_input(source) as file:
        yield from iterate_documents(source, file)


def iterate_documents(source: str, file: IO[bytes]) -> Iterator[InputDocument]:
    """Yield the documents of an open file. Reads lazily.

    The suffix of the name determines the format. Without a known suffix, the file is JSON Lines if its first
    line
    is a complete JSON document and another line follows.
    """
    first, second = (_next_line(file) for _ in range(2))
    if Path(source).suffix in _LINES or (
        Path(source).suffix != ".json" and second.strip() and _is_json(first)
    ):
        yield from _json_lines(source, chain([first, second], iter(lambda: _next_line(file), b"")))
    else:
        yield InputDocument(
            source,
            None,
            (first + second + file.read(MAX_INPUT_BYTES))[: MAX_INPUT_BYTES + 1],
        )


def input_size(source: str) -> int | None:
    """Return the size of a file in bytes; None if it is unknown."""
    return None if source == STDIN else Path(source).stat().st_size


@contextmanager
def open_input(source: str) -> Iterator[IO[bytes]]:
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
            f"cannot read {printable(source)}: {error.strerror}",
            code="UNREADABLE",
        ) from None


def _standard_input() -> IO[bytes]:
    """Return a duplicate of standard input, for a thread that may still block on it when the process ends.

    Python closes its own stdin object at exit, which aborts the process if a thread is reading from it.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:
        return sys.stdin.buffer  # not a file


def _json_lines(source: str, lines: Iterator[bytes]) -> Iterator[InputDocument]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield InputDocument(source, number, line)


def _next_line(file: IO[bytes]) -> bytes:
    """Read a line, at most up to the size limit."""
    return read_bounded_line(file, MAX_INPUT_BYTES + 1)


def _is_json(text: bytes) -> bool:
    try:
        engine.parse(text)
    except SpecError:
        return False
    return True


_SPEC_COLUMN = "spec"
_ID_COLUMN = "id"
_BATCH_ROWS = 256


class ParquetRow(NamedTuple):
    """A specification, its id in the file, and its share of the size of the file."""

    spec: bytes
    id: str | None
    size: float


def read_rows(file: str) -> Iterator[ParquetRow]:
    """Yield the rows of a file in batches of some hundred. A null value is an empty specification.

    Raises:
        InvalidArgumentError: `UNREADABLE`, the file is not Parquet or lacks the column `spec`;
            `PARQUET_NOT_INSTALLED`, pyarrow is missing.
        OSError: the file cannot be opened.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ImportError:
        raise InvalidArgumentError(
            f"cannot read {printable(file)}: reading Parquet needs pyarrow: pip install 'peripety[parquet]',"
            " or convert the file to JSON Lines",
            code="PARQUET_NOT_INSTALLED",
        ) from None
    try:
        with ParquetFile(file) as opened:
            columns = _select_columns(file, opened.schema_arrow.names)
            size = Path(file).stat().st_size / max(1, opened.metadata.num_rows)
            for batch in opened.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                for row in batch.to_pylist():
                    yield ParquetRow(
                        _to_bytes(row[_SPEC_COLUMN]),
                        None if row.get(_ID_COLUMN) is None else str(row[_ID_COLUMN]),
                        size,
                    )
    except pa.ArrowException as error:
        raise _unreadable_parquet(file, str(error).splitlines()[0]) from None


def _select_columns(file: str, names: list[str]) -> list[str]:
    if _SPEC_COLUMN not in names:
        found = ", ".join(map(printable, names)) or "none"
        raise _unreadable_parquet(
            file,
            f"column {_SPEC_COLUMN} with the specifications is missing; columns: {found}",
        )
    return [name for name in (_SPEC_COLUMN, _ID_COLUMN) if name in names]


def _to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str("" if value is None else value).encode()


def _unreadable_parquet(file: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"cannot read {printable(file)}: {printable(reason)}", code="UNREADABLE")


_PARQUET = ".parquet"
_SUFFIXES = (".json", ".jsonl", ".ndjson", _PARQUET)


class SpecLocation(NamedTuple):
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


def iterate_specifications(sources: Sequence[str]) -> Iterator[Document[SpecLocation]]:
    """Yield the specifications of files and folders; for an unreadable source, an error document."""
    for source in sources:
        is_empty = True
        for document in _in_source(source):
            is_empty = False
            yield document
        if is_empty and Path(source).is_dir():
            reason = f"cannot read {printable(source)}: the folder has no {', '.join(_SUFFIXES)} file"
            yield _unreadable_source(source, InvalidArgumentError(reason, code="UNREADABLE"))


def total_bytes(sources: Sequence[str]) -> int | None:
    """Return the number of bytes to read; None if it is unknown."""
    if STDIN in sources:
        return None
    return sum(_file_size(file) for source in sources for file in _files_of(source) if isinstance(file, str))


def _file_size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def _in_source(source: str) -> Iterator[Document[SpecLocation]]:
    for file in _files_of(source):
        if isinstance(file, str):
            yield from _in_input_file(file)
        else:
            yield file


def _files_of(source: str) -> Iterator[str | Document[SpecLocation]]:
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
                    yield from _files_of(entry.path)
                elif entry.name.endswith(_SUFFIXES):
                    yield entry.path
    except OSError as error:
        yield _unreadable_source(source, _error_document(source, error))


def _in_input_file(file: str) -> Iterator[Document[SpecLocation]]:
    try:
        if file.endswith(_PARQUET):
            for number, row in enumerate(read_rows(file), start=1):
                yield SpecLocation(file, number, row.size, row.id), row.spec
            return
        _refuse_yaml(file)
        for document in read_documents(file):
            content = DocumentVerdict((TOO_LARGE,), 1) if document.is_too_large else document.content
            yield SpecLocation(file, document.line, len(document.content)), content
    except InvalidArgumentError as error:
        yield _unreadable_source(file, error)
    except OSError as error:
        yield _unreadable_source(file, _error_document(file, error))


def _error_document(source: str, error: OSError) -> InvalidArgumentError:
    return InvalidArgumentError(f"cannot read {printable(source)}: {error.strerror}", code="UNREADABLE")


def _unreadable_source(source: str, error: InvalidArgumentError) -> Document[SpecLocation]:
    return SpecLocation(source), DocumentVerdict(error=error)
