"""What came of parts, in a folder: a file for each part, which is there as a whole or not at all.

Whoever does a part may die, and another one may do it again, even while the first one still lives: each
writes to a file of its own and gives it the name of the part when it is complete. What that holds does not
depend on who wrote it. So nothing is lost and nothing is there twice, and a job that was broken off goes on
where it was.
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
"""What results may be written as."""

_JOB = "_job.json"
_DOCUMENTS = ("findings", "certificate")  # columns that hold JSON, which a line of JSON holds as it is


@dataclass(frozen=True, slots=True)
class Tally:
    """How many documents there were, and how many of them were accepted."""

    documents: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Output:
    """Where the results of one job go, and how they are reached.

    Attributes:
        folder: where everybody who does a part can write to.
        options: how each document is checked.
        form: what the files of parts are.
    """

    folder: str
    options: BatchOptions
    form: Literal["jsonl", "parquet"] = "parquet"

    def begin(self, parts: Sequence[Part]) -> list[int]:
        """Make the folder ready; the numbers of the parts that are still to be done.

        Raises:
            FailedPreconditionError: `OUTPUT_TAKEN`, the folder holds something else.
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
        """Check the documents of a part, and write what came of it."""
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
        """Remove what was begun by those who died."""
        for left in Path(self.folder).glob(".*.tmp"):
            left.unlink(missing_ok=True)

    def _name(self, number: int) -> str:
        return f"part-{number:06d}.{self.form}"

    def _job(self, parts: Sequence[Part]) -> bytes:
        """All that the results follow from, as it is known before they are reached."""
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
            f"{self.folder} holds something else than results of this job: name a new folder, or ask the same"
            " of the same files to go on",
            code="OUTPUT_TAKEN",
        )

    @contextmanager
    def _appearing(self, name: str) -> Iterator[IO[bytes]]:
        """A file that appears under its name once it is complete and on disk."""
        # Processes on several machines may have the same number.
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
