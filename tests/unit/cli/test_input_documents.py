"""Documents in an input file.

Specifications in Parquet files.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from peripety.cli.app import app
from peripety.cli.input_documents import InputDocument, iterate_documents, read_rows
from peripety.cli.output import MAX_INPUT_BYTES
from peripety.errors import InvalidArgumentError
from support.scenario.batches import BYTES, GOOD

if TYPE_CHECKING:
    from pathlib import Path


def found(source: str, content: bytes) -> list[tuple[int | None, bytes]]:
    return [(document.line, document.content) for document in iterate_documents(source, io.BytesIO(content))]


@pytest.mark.parametrize(
    "content",
    [b"{}", b"{}\n", b"{}\n\n\n", b'{\n  "a": 1\n}\n', b"", b"\xff", b"[1,\n2]"],
)
def test_a_document_alone_is_one(content: bytes) -> None:
    assert found("-", content) == [(None, content)]


def test_lines_that_are_documents_are_many() -> None:
    assert found("-", b"{}\n[1]\n\nbroken\n{}") == [(1, b"{}\n"), (2, b"[1]\n"), (4, b"broken\n"), (5, b"{}")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
def test_the_name_says_lines(name: str) -> None:
    assert found(name, b"{\n1}\n") == [(1, b"{\n"), (2, b"1}\n")]


def test_the_name_says_one_document() -> None:
    assert found("a.json", b"{}\n{}\n") == [(None, b"{}\n{}\n")]


def test_a_document_that_is_too_large_is_cut_beyond_the_limit() -> None:
    ((_, content),) = found("a.json", b"[" + b" " * (3 * MAX_INPUT_BYTES))
    assert len(content) == MAX_INPUT_BYTES + 1


def test_a_line_that_is_too_large_is_cut_and_the_next_one_is_read() -> None:
    lines = found("a.jsonl", b"x" * (3 * MAX_INPUT_BYTES) + b"\n{}\n")
    assert [(number, len(content)) for number, content in lines] == [(1, MAX_INPUT_BYTES + 1), (2, 3)]


def test_documents_come_as_they_are_read() -> None:
    class Stream(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise AssertionError("a stream of lines must not be read whole")

    lines = iterate_documents("-", Stream(b"{}\n{}\n{}\n"))
    assert next(lines) == InputDocument("-", 1, b"{}\n")


def written(path: Path, **columns: pa.Array) -> str:
    parquet.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_specifications_may_be_text_or_bytes(tmp_path: Path, kind: pa.DataType) -> None:
    value = GOOD if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else GOOD.decode()
    (row,) = read_rows(written(tmp_path / "a.parquet", spec=pa.array([value], kind)))
    assert (row.spec, row.id) == (GOOD, None)


def test_rows_have_their_ids_and_their_share_of_the_file(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.parquet",
        id=pa.array([1, None, 3]),
        spec=pa.array([BYTES, None, GOOD]),
        more=pa.array([0, 0, 0]),
    )
    found = list(read_rows(file))
    assert [(row.id, row.spec) for row in found] == [("1", BYTES), (None, b""), ("3", GOOD)]
    assert sum(row.size for row in found) == pytest.approx((tmp_path / "a.parquet").stat().st_size)


def test_many_rows_are_read_some_at_a_time(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", spec=pa.array([b"%d" % number for number in range(1_000)]))
    assert [row.spec for row in read_rows(file)] == [b"%d" % number for number in range(1_000)]


def test_a_file_without_the_column_names_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"column spec .* is missing; columns: words"):
        list(read_rows(written(tmp_path / "a.parquet", words=pa.array(["x"]))))


def test_without_the_library_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "a.parquet", spec=pa.array([GOOD]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = CliRunner().invoke(app, ["validate", file])
    assert result.exit_code == 2
    assert "pip install 'peripety[parquet]'" in result.stderr
    assert "PARQUET_NOT_INSTALLED" in result.stderr
