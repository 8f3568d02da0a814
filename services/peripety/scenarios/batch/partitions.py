"""Validation of one partition of a table, for distributed data engines.

The interface is Arrow in, Arrow out, on one thread. The result of a row depends only on the row and the
options, so an engine may split tables in any way and repeat a partition.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from peripety.errors import InvalidArgumentError
from peripety.scenarios.batch.model import BatchOptions
from peripety.scenarios.batch.pipeline import validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.scenarios.batch.model import Verdict

__all__ = ["ID", "RESULTS", "SPEC", "validate_partition"]

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
    table: pa.RecordBatch | pa.Table, options: BatchOptions | None = None
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
    for row, verdict in validate(enumerate(_documents(table)), options or BatchOptions(), threads=1):
        rows[row] = _row(verdict)
    columns = [pa.array([row[name] for row in rows], type=kind) for name, kind in RESULTS.items()]
    return pa.RecordBatch.from_arrays([_whole(table.column(ID)), *columns], names=[ID, *RESULTS])


def _documents(table: pa.RecordBatch | pa.Table) -> Iterator[bytes]:
    """Yield each document as bytes; a null is empty, and is reported as invalid JSON."""
    for value in table.column(SPEC):
        content = value.as_py()
        yield content.encode() if isinstance(content, str) else content or b""


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; a table may store it in chunks."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _row(verdict: Verdict) -> dict[str, Any]:
    findings = [{**asdict(found), "severity": found.severity.value} for found in verdict.findings]
    report, error = verdict.dry_run, verdict.error
    return {
        "accepted": verdict.accepted,
        "spec_hash": verdict.spec_hash or None,
        "findings": json.dumps(findings, ensure_ascii=False, separators=(",", ":")),
        "total": verdict.total,
        "runs": report and report.runs,
        "lost": report and report.lost,
        "fail_rate": report and report.fail_rate,
        "certificate": verdict.certificate and verdict.certificate.decode(),
        "error": error and f"{error.code}: {error}",
    }
