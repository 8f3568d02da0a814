"""Input splits: files of specifications in JSON Lines or Parquet, split into independent parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from peripety.errors import InvalidArgumentError
from peripety.lines import next_line
from peripety.scenarios.batch.partitions import ID, SPEC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DOCUMENTS", "Lines", "Part", "RowGroup", "parts_of"]

DOCUMENTS = 500
"""The maximum number of documents in a part of JSON Lines, and per read of a Parquet file."""

_LINES, _PARQUET = {".jsonl", ".ndjson"}, ".parquet"
# A longer line exceeds the limit of the engine, which reports that from its beginning.
_KEPT_OF_A_LINE = (1 << 20) + 1


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file, one specification each; blank lines are ignored. An id is `file:line`.

    Attributes:
        source: the file.
        offset: the position of the first line, in bytes.
        first: the number of the first line, from 1.
        count: the number of lines, including blank ones.
    """

    source: str
    offset: int
    first: int
    count: int

    def tables(self) -> Iterator[pa.RecordBatch]:
        """Yield the specifications, with the columns `id` and `spec`."""
        with Path(self.source).open("rb") as file:
            file.seek(self.offset)
            lines = [
                (number, next_line(file, _KEPT_OF_A_LINE))
                for number in range(self.first, self.first + self.count)
            ]
        found = [(f"{self.source}:{number}", line) for number, line in lines if line.strip()]
        ids, documents = ([row[column] for row in found] for column in (0, 1))
        yield pa.record_batch([pa.array(ids, "string"), pa.array(documents, "binary")], [ID, SPEC])


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Row group of a Parquet file with the columns `id` and `spec`.

    Attributes:
        source: the file.
        number: the number of the row group, from 0.
    """

    source: str
    number: int

    def tables(self) -> Iterator[pa.RecordBatch]:
        """Yield the specifications in batches."""
        with parquet.ParquetFile(self.source) as file:
            yield from file.iter_batches(DOCUMENTS, row_groups=[self.number], columns=[ID, SPEC])


Part = Lines | RowGroup


def parts_of(sources: Iterable[Path], documents: int = DOCUMENTS) -> Iterator[Part]:
    """Split files into parts. JSON Lines files are read to find line ends; Parquet files are not.

    Args:
        sources: files, and folders of them; a name ends in .jsonl, .ndjson or .parquet.
        documents: the maximum number of lines in a part.

    Raises:
        InvalidArgumentError: `UNREADABLE`, a file has another type or does not exist.
    """
    for source in sources:
        for file in _files(source):
            try:
                yield from _row_groups(file) if file.suffix == _PARQUET else _line_ranges(file, documents)
            except (OSError, pa.ArrowInvalid) as error:
                raise InvalidArgumentError(f"cannot read {file}: {error}", code="UNREADABLE") from None


def _files(source: Path) -> list[Path]:
    """Return the file, or the files of a folder in alphabetical order."""
    known = {*_LINES, _PARQUET}
    files = sorted(path for path in source.iterdir() if path.suffix in known) if source.is_dir() else [source]
    if not files or any(path.suffix not in known for path in files):
        raise InvalidArgumentError(
            f"{source} holds no specifications: name files that end in .jsonl, .ndjson or .parquet, or a"
            " folder of such files",
            code="UNREADABLE",
        )
    return files


def _row_groups(source: Path) -> Iterator[RowGroup]:
    with parquet.ParquetFile(source) as file:
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    yield from (RowGroup(str(source), number) for number, rows in enumerate(groups) if rows)


def _line_ranges(source: Path, documents: int) -> Iterator[Lines]:
    with source.open("rb") as file:
        first, count, offset = 1, 0, 0
        while next_line(file, _KEPT_OF_A_LINE):
            count += 1
            if count == documents:
                yield Lines(str(source), offset, first, count)
                first, count, offset = first + count, 0, file.tell()
        if count:
            yield Lines(str(source), offset, first, count)
