"""Files cut into parts: each document is in one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from peripety.errors import InvalidArgumentError
from peripety.scenario.batch.partitions import LineRange, RowGroup, split_inputs, validate_partition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peripety.scenario.batch.partitions import InputSplit


def read(parts: Sequence[InputSplit]) -> list[tuple[Any, Any]]:
    return [
        (row["id"], row["spec"])
        for part in parts
        for table in part.iter_tables()
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("documents", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    "text",
    [b'{"a":1}\n\n{"b":2}\r\n  \n{"c":"\xc3\xa9"}\n', b'{"a":1}\n{"b":2}', b"\n"],
)
def test_each_line_is_in_one_part_under_its_number(tmp_path: Path, text: bytes, documents: int) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(text)
    parts = list(split_inputs([file], documents))
    lines = text.split(b"\n")
    assert [(id_, spec.rstrip()) for id_, spec in read(parts)] == [
        (f"{file}:{number}", line.rstrip()) for number, line in enumerate(lines, 1) if line.strip()
    ]
    assert all(isinstance(part, LineRange) and part.count <= documents for part in parts)


def test_a_line_that_is_too_long_is_found_so_and_hides_no_other(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'"' + b"x" * (3 << 20) + b'"\n1\n')
    (part,) = split_inputs([file])
    (table,) = part.iter_tables()
    long, short = validate_partition(table).to_pylist()
    assert json.loads(long["findings"])[0]["code"] == "DOCUMENT_TOO_LARGE"
    assert (short["id"], json.loads(short["findings"])[0]["code"]) == (f"{file}:2", "WRONG_TYPE")


def test_each_row_group_is_a_part_unless_it_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    table = pa.table({"more": [1, 2, 3], "spec": ["a", "b", "c"], "id": [7, 8, 9]})
    with parquet.ParquetWriter(file, table.schema) as writer:
        for part in (table.slice(0, 2), table.slice(0, 0), table.slice(2)):
            writer.write_table(part, row_group_size=2)
    parts = list(split_inputs([file]))
    assert all(isinstance(part, RowGroup) for part in parts)
    assert [read([part]) for part in parts] == [[(7, "a"), (8, "b")], [(9, "c")]]


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.ndjson", "c.txt"):
        (tmp_path / name).write_bytes(b"1\n")
    assert [part.source for part in split_inputs([tmp_path])] == [
        str(tmp_path / "a.ndjson"),
        str(tmp_path / "b.jsonl"),
    ]


@pytest.mark.parametrize("name", ["a.json", "no.jsonl", "no.parquet", "bad.parquet", "empty"])
def test_what_cannot_be_cut_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_bytes(b"{}")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1?")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgumentError, match=name) as caught:
        list(split_inputs([tmp_path / name]))
    assert caught.value.code == "UNREADABLE"
