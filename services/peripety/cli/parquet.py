"""Specifications from the rows of a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.cli.text import printable
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Row", "rows"]

_SPEC = "spec"
_ID = "id"
_ROWS = 256


class Row(NamedTuple):
    """A specification, its id in the file, and its share of the size of the file."""

    spec: bytes
    id: str | None
    size: float


def rows(file: str) -> Iterator[Row]:
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
            columns = _columns(file, opened.schema_arrow.names)
            size = Path(file).stat().st_size / max(1, opened.metadata.num_rows)
            for batch in opened.iter_batches(batch_size=_ROWS, columns=columns):
                for row in batch.to_pylist():
                    yield Row(_bytes(row[_SPEC]), None if row.get(_ID) is None else str(row[_ID]), size)
    except pa.ArrowException as error:
        raise _unreadable(file, str(error).splitlines()[0]) from None


def _columns(file: str, names: list[str]) -> list[str]:
    if _SPEC not in names:
        found = ", ".join(map(printable, names)) or "none"
        raise _unreadable(file, f"column {_SPEC} with the specifications is missing; columns: {found}")
    return [name for name in (_SPEC, _ID) if name in names]


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str("" if value is None else value).encode()


def _unreadable(file: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"cannot read {printable(file)}: {printable(reason)}", code="UNREADABLE")
