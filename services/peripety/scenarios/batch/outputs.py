"""Output folder of a job: one file per part, complete or absent.

A worker may die during a part, and another worker may repeat it, even while the first one is alive. Each
writes to its own temporary file and renames it when it is complete. The content does not depend on the
worker. So a job neither loses nor duplicates results, and an interrupted job can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal
from uuid import uuid4

import pyarrow as pa
from pyarrow import compute, parquet

from peripety.errors import FailedPreconditionError
from peripety.scenarios.batch.partitions import validate_partition
from peripety.scenarios.batch.records import asked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.scenarios.batch.model import BatchOptions
    from peripety.scenarios.batch.parts import Part

__all__ = ["FORMS", "Output", "Tally"]

FORMS = ("jsonl", "parquet")
"""The output formats."""

_JOB = "_job.json"
_DOCUMENTS = ("findings", "certificate")  # columns with JSON, embedded as JSON in a line of JSON


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of documents, and of accepted ones."""

    documents: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Output:
    """Output of one job.

    Attributes:
        folder: a folder that all workers can write to.
        options: validation options.
        form: the output format.
    """

    folder: str
    options: BatchOptions
    form: Literal["jsonl", "parquet"] = "parquet"

    def begin(self, parts: Sequence[Part]) -> list[int]:
        """Prepare the folder; return the numbers of the unfinished parts.

        Raises:
            FailedPreconditionError: `OUTPUT_TAKEN`, the folder has other content.
        """
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        job = self._job(parts)
        if not (folder / _JOB).exists():
            if any(folder.iterdir()):
                raise self._taken()
            with self._appearing(_JOB) as file:
                file.write(job)
        elif (folder / _JOB).read_bytes() != job:
            raise self._taken()
        return [number for number in range(len(parts)) if not (folder / self._name(number)).exists()]

    def write(self, number: int, part: Part) -> Tally:
        """Validate the documents of a part, and write the results."""
        with self._appearing(self._name(number)) as file:
            results = pa.Table.from_batches(
                [validate_partition(table, self.options) for table in part.tables()]
            )
            if self.form == "parquet":
                parquet.write_table(results, file)
            else:
                file.writelines(_lines(results))
        return Tally(results.num_rows, compute.sum(results["accepted"], min_count=0).as_py())

    def end(self) -> None:
        """Remove the temporary files of dead workers."""
        for left in Path(self.folder).glob(".*.tmp"):
            left.unlink(missing_ok=True)

    def _name(self, number: int) -> str:
        return f"part-{number:06d}.{self.form}"

    def _job(self, parts: Sequence[Part]) -> bytes:
        """Return the fingerprint of a job: everything that determines its results."""
        sources = {part.source: Path(part.source).stat() for part in parts}
        cut = {
            "parts": [asdict(part) for part in parts],
            "sources": {name: [found.st_size, found.st_mtime_ns] for name, found in sources.items()},
        }
        digest = hashlib.sha256(json.dumps(cut, sort_keys=True).encode()).hexdigest()
        return json.dumps(
            {"asked": asked(self.options), "form": self.form, "parts": len(parts), "cut": digest}
        ).encode()

    def _taken(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.folder} has other content than results of this job: use a new folder, or resume with the"
            " same files and options",
            code="OUTPUT_TAKEN",
        )

    @contextmanager
    def _appearing(self, name: str) -> Iterator[IO[bytes]]:
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


def _lines(results: pa.Table) -> Iterator[bytes]:
    for row in results.to_pylist():
        told = {name: json.loads(row[name] or "null") for name in _DOCUMENTS}
        yield json.dumps(row | told, ensure_ascii=False, separators=(",", ":"), default=str).encode() + b"\n"
