"""Partitions of a distributed job: input splits, validation of one partition, and the output folder.

The interface for data engines is Arrow in, Arrow out, on one thread. The result of a row depends only on
the row and the options, so an engine may split tables in any way and repeat a partition.

The output folder has one file per part, complete or absent. A worker may die during a part, and another
worker may repeat it, even while the first one is alive. Each writes to its own temporary file and renames
it when it is complete. The content does not depend on the worker. So a job neither loses nor duplicates
results, and an interrupted job can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal
from uuid import uuid4

import pyarrow as pa
from pyarrow import compute, parquet

from peripety.core.text_files import read_bounded_line
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.scenario.batch.pipeline import validate
from peripety.scenario.batch.verdicts import BatchOptions, hash_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.scenario.batch.verdicts import DocumentVerdict


ID, SPEC = "id", "spec"

RESULTS: Mapping[str, str] = {
    "accepted": "bool",
    "spec_hash": "string",
    "findings": "string",
    "total": "int64",
    "runs": "int64",
    "lost": "int64",
    "fail_rate": "double",
    "certificate": "string",
    "error": "string",
}
"""The result columns beside `id`, with their Arrow types; see `validate_partition`."""


def validate_partition(
    table: pa.RecordBatch | pa.Table,
    options: BatchOptions | None = None,
) -> pa.RecordBatch:
    """Validate the specifications of a partition.

    Args:
        table: with the columns `id`, of any type, and `spec`, JSON as text or bytes; others are ignored.
        options: validation options; `BatchOptions()` by default.

    Returns:
        A row for each row, in the same order: its `id`; `accepted`; `spec_hash`, null if the document is not
        acceptable JSON; `findings`, a JSON list of `{code, path, message, severity}`, at most `MAX_FINDINGS`,
        and their `total`; `runs`, `lost` and `fail_rate` of the dry-run, null without one; `certificate`, its
        document, null without one; `error`, the reason for a missing verdict that is not an error of the
        document, else null.

    Raises:
        InvalidArgumentError: `MISSING_COLUMN`.
    """
    for name in (ID, SPEC):
        if name not in table.schema.names:
            raise InvalidArgumentError(
                f"a partition needs the column '{name}' and has {', '.join(table.schema.names) or 'none'};"
                " rename one",
                code="MISSING_COLUMN",
            )
    rows: list[dict[str, Any]] = [{}] * table.num_rows
    for row, verdict in validate(enumerate(_iter_documents(table)), options or BatchOptions(), threads=1):
        rows[row] = _verdict_to_row(verdict)
    columns = [pa.array([row[name] for row in rows], type=kind) for name, kind in RESULTS.items()]
    return pa.RecordBatch.from_arrays([_combine_chunks(table.column(ID)), *columns], names=[ID, *RESULTS])


def _iter_documents(table: pa.RecordBatch | pa.Table) -> Iterator[bytes]:
    """Yield each document as bytes; a null is empty, and is reported as invalid JSON."""
    for value in table.column(SPEC):
        content = value.as_py()
        yield content.encode() if isinstance(content, str) else content or b""


def _combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; a table may store it in chunks."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _verdict_to_row(verdict: DocumentVerdict) -> dict[str, Any]:
    findings = [{**asdict(found), "severity": found.severity.value} for found in verdict.findings]
    report, error = verdict.dry_run, verdict.error
    return {
        "accepted": verdict.is_accepted,
        "spec_hash": verdict.spec_hash or None,
        "findings": json.dumps(findings, ensure_ascii=False, separators=(",", ":")),
        "total": verdict.total,
        "runs": report and report.runs,
        "lost": report and report.lost,
        "fail_rate": report and report.fail_rate,
        "certificate": verdict.certificate and verdict.certificate.decode(),
        "error": error and f"{error.code}: {error}",
    }


FORMS = ("jsonl", "parquet")
"""The output formats."""

_JOB = "_job.json"
_DOCUMENTS = ("findings", "certificate")  # columns with JSON, embedded as JSON in a line of JSON


@dataclass(frozen=True, slots=True)
class Totals:
    """Number of documents, and of accepted ones."""

    documents: int
    accepted: int


@dataclass(frozen=True, slots=True)
class JobOutput:
    """Output of one job.

    Attributes:
        folder: a folder that all workers can write to.
        options: validation options.
        output_format: the output format.
    """

    folder: str
    options: BatchOptions
    output_format: Literal["jsonl", "parquet"] = "parquet"

    def prepare(self, parts: Sequence[InputSplit]) -> list[int]:
        """Prepare the folder; return the numbers of the unfinished parts.

        Raises:
            FailedPreconditionError: `OUTPUT_EXISTS`, the folder has other content.
        """
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        job = self._job_fingerprint(parts)
        if not (folder / _JOB).exists():
            if any(folder.iterdir()):
                raise self._output_taken_error()
            with self._open_atomically(_JOB) as file:
                file.write(job)
        elif (folder / _JOB).read_bytes() != job:
            raise self._output_taken_error()
        return [number for number in range(len(parts)) if not (folder / self._file_name(number)).exists()]

    def write(self, number: int, part: InputSplit) -> Totals:
        """Validate the documents of a part, and write the results."""
        with self._open_atomically(self._file_name(number)) as file:
            results = pa.Table.from_batches(
                [validate_partition(table, self.options) for table in part.iter_tables()],
            )
            if self.output_format == "parquet":
                parquet.write_table(results, file)
            else:
                file.writelines(_to_json_lines(results))
        return Totals(results.num_rows, compute.sum(results["accepted"], min_count=0).as_py())

    def clean_up(self) -> None:
        """Remove the temporary files of dead workers."""
        for left in Path(self.folder).glob(".*.tmp"):
            left.unlink(missing_ok=True)

    def _file_name(self, number: int) -> str:
        return f"part-{number:06d}.{self.output_format}"

    def _job_fingerprint(self, parts: Sequence[InputSplit]) -> bytes:
        """Return the fingerprint of a job: everything that determines its results."""
        sources = {part.source: Path(part.source).stat() for part in parts}
        cut = {
            "parts": [asdict(part) for part in parts],
            "sources": {name: [found.st_size, found.st_mtime_ns] for name, found in sources.items()},
        }
        digest = hashlib.sha256(json.dumps(cut, sort_keys=True).encode()).hexdigest()
        return json.dumps(
            {
                "asked": hash_options(self.options),
                "form": self.output_format,
                "parts": len(parts),
                "cut": digest,
            },
        ).encode()

    def _output_taken_error(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.folder} has other content than results of this job: use a new folder, or resume with the"
            " same files and options",
            code="OUTPUT_EXISTS",
        )

    @contextmanager
    def _open_atomically(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file that appears under its name only when it is complete and on disk."""
        # Processes on different machines may have the same number.
        begun = Path(self.folder) / f".{name}.{os.getpid()}.{uuid4().hex}.tmp"
        try:
            with begun.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            begun.replace(Path(self.folder) / name)
        finally:
            with suppress(FileNotFoundError):
                begun.unlink()


def _to_json_lines(results: pa.Table) -> Iterator[bytes]:
    for row in results.to_pylist():
        told = {name: json.loads(row[name] or "null") for name in _DOCUMENTS}
        yield json.dumps(row | told, ensure_ascii=False, separators=(",", ":"), default=str).encode() + b"\n"


DOCUMENTS = 500
"""The maximum number of documents in a part of JSON Lines, and per read of a Parquet file."""

_LINES, _PARQUET = {".jsonl", ".ndjson"}, ".parquet"
# A longer line exceeds the limit of the engine, which reports that from its beginning.
_MAX_LINE_BYTES = (1 << 20) + 1


@dataclass(frozen=True, slots=True)
class LineRange:
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

    def iter_tables(self) -> Iterator[pa.RecordBatch]:
        """Yield the specifications, with the columns `id` and `spec`."""
        with Path(self.source).open("rb") as file:
            file.seek(self.offset)
            lines = [
                (number, read_bounded_line(file, _MAX_LINE_BYTES))
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

    def iter_tables(self) -> Iterator[pa.RecordBatch]:
        """Yield the specifications in batches."""
        with parquet.ParquetFile(self.source) as file:
            yield from file.iter_batches(DOCUMENTS, row_groups=[self.number], columns=[ID, SPEC])


InputSplit = LineRange | RowGroup


def split_inputs(sources: Iterable[Path], documents: int = DOCUMENTS) -> Iterator[InputSplit]:
    """Split files into parts. JSON Lines files are read to find line ends; Parquet files are not.

    Args:
        sources: files, and folders of them; a name ends in .jsonl, .ndjson or .parquet.
        documents: the maximum number of lines in a part.

    Raises:
        InvalidArgumentError: `UNREADABLE`, a file has another type or does not exist.
    """
    for source in sources:
        for file in _list_files(source):
            try:
                yield from _split_parquet(file) if file.suffix == _PARQUET else _split_lines(file, documents)
            except (OSError, pa.ArrowInvalid) as error:
                raise InvalidArgumentError(f"cannot read {file}: {error}", code="UNREADABLE") from None


def _list_files(source: Path) -> list[Path]:
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


def _split_parquet(source: Path) -> Iterator[RowGroup]:
    with parquet.ParquetFile(source) as file:
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    yield from (RowGroup(str(source), number) for number, rows in enumerate(groups) if rows)


def _split_lines(source: Path, documents: int) -> Iterator[LineRange]:
    with source.open("rb") as file:
        first, count, offset = 1, 0, 0
        while read_bounded_line(file, _MAX_LINE_BYTES):
            count += 1
            if count == documents:
                yield LineRange(str(source), offset, first, count)
                first, count, offset = first + count, 0, file.tell()
        if count:
            yield LineRange(str(source), offset, first, count)
