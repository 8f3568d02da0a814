"""Partition results: written atomically and once, regardless of repeated writes.

Partitions of tables: a verdict for each row of any table.

Files split into partitions: each document is in one of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from peripety import engine
from peripety.certification.options import CertificateOptions, DryRunOptions
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.scenario.batch import BatchOptions, partitions
from peripety.scenario.batch.partitions import (
    FORMS,
    RESULTS,
    JobOutput,
    LineRange,
    RowGroup,
    Totals,
    split_inputs,
    validate_partition,
)
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import ValidationLevel
from support.engine.specs import document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peripety.scenario.batch.partitions import InputSplit


DOCUMENTS = [*(generate_spec(3, index) for index in range(6)), document(seed="seven")]


@pytest.fixture
def parts(tmp_path: Path) -> list[InputSplit]:
    file = tmp_path / "in.jsonl"
    file.write_bytes(b"\n".join(DOCUMENTS))
    return list(split_inputs([file], 3))


def output(tmp_path: Path, form: Any = "jsonl") -> JobOutput:
    return JobOutput(str(tmp_path / "out"), BatchOptions(), form)


def test_both_forms_hold_the_same_rows(tmp_path: Path, parts: list[InputSplit]) -> None:
    read: dict[str, list[dict[str, Any]]] = {}
    for form in FORMS:
        there = JobOutput(str(tmp_path / form), BatchOptions(), form)  # type: ignore[arg-type]  # one of FORMS
        assert [there.write(number, parts[number]) for number in there.prepare(parts)] == [
            Totals(3, 3),
            Totals(3, 3),
            Totals(1, 0),
        ]
        files = sorted((tmp_path / form).glob("part-*"))
        assert [file.name for file in files] == [f"part-00000{number}.{form}" for number in range(3)]
        read[form] = [
            row
            for file in files
            for row in (
                parquet.read_table(file).to_pylist()
                if form == "parquet"
                else map(json.loads, file.read_text().splitlines())
            )
        ]
    for row in read["parquet"]:
        row["findings"] = json.loads(row["findings"])  # the other JSON, certificates, is null here
    assert read["jsonl"] == read["parquet"]
    assert [row["accepted"] for row in read["jsonl"]] == [True] * 6 + [False]


def test_a_part_that_is_done_again_is_there_once_and_the_same(
    tmp_path: Path,
    parts: list[InputSplit],
) -> None:
    there = output(tmp_path)
    there.prepare(parts)
    there.write(0, parts[0])
    first = (tmp_path / "out" / "part-000000.jsonl").read_bytes()
    there.write(0, parts[0])
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["_job.json", "part-000000.jsonl"]
    assert (tmp_path / "out" / "part-000000.jsonl").read_bytes() == first


def test_a_part_whose_writing_fails_leaves_nothing(
    tmp_path: Path,
    parts: list[InputSplit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: Any) -> Any:
        yield b"half of it"
        raise RuntimeError("no more")

    there = output(tmp_path)
    there.prepare(parts)
    monkeypatch.setattr(partitions, "_to_json_lines", fail)
    with pytest.raises(RuntimeError, match="no more"):
        there.write(0, parts[0])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_job.json"]


def test_a_job_goes_on_with_what_is_not_there(tmp_path: Path, parts: list[InputSplit]) -> None:
    there = output(tmp_path)
    assert there.prepare(parts) == [0, 1, 2]
    there.write(1, parts[1])
    assert output(tmp_path).prepare(parts) == [0, 2]


def test_what_a_dead_writer_left_is_removed_at_the_end(tmp_path: Path, parts: list[InputSplit]) -> None:
    there = output(tmp_path)
    there.prepare(parts)
    (tmp_path / "out" / ".part-000000.jsonl.1.a.tmp").write_bytes(b"half")
    assert there.prepare(parts) == [0, 1, 2]
    there.clean_up()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_job.json"]


def test_a_folder_with_anything_else_is_refused(tmp_path: Path, parts: list[InputSplit]) -> None:
    there = output(tmp_path)
    there.prepare(parts)
    others = [
        JobOutput(there.folder, BatchOptions(ValidationLevel.SCHEMA), "jsonl"),
        JobOutput(there.folder, BatchOptions(), "parquet"),
    ]
    for other in others:
        with pytest.raises(FailedPreconditionError, match="other content"):
            other.prepare(parts)
    with pytest.raises(FailedPreconditionError):
        there.prepare(parts[:2])
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(reversed(DOCUMENTS)))
    with pytest.raises(FailedPreconditionError):
        there.prepare(parts)
    with pytest.raises(FailedPreconditionError):
        JobOutput(str(tmp_path), BatchOptions(), "jsonl").prepare(parts)


GOOD = generate_spec(1, 0)
BAD = document(seed="seven")


def partition(specs: list[Any], kind: str = "string", ids: Any = None) -> pa.Table:
    identities = pa.array(list(range(len(specs))) if ids is None else ids)
    return pa.table({"id": identities, "spec": pa.array(specs, kind), "other": [None] * len(specs)})


def rows(result: pa.RecordBatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result.to_pylist()
    return found


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "large_binary"])
def test_text_and_bytes_are_documents(kind: str) -> None:
    specs = [GOOD, BAD] if "binary" in kind else [GOOD.decode(), BAD.decode()]
    good, bad = rows(validate_partition(partition(specs, kind)))
    assert good["accepted"]
    assert good["spec_hash"] == engine.compile(GOOD).spec_hash
    assert (good["findings"], good["total"], good["error"]) == ("[]", 0, None)
    (finding,) = json.loads(bad["findings"])
    assert not bad["accepted"]
    assert (finding["path"], finding["severity"], bad["total"]) == ("/seed", "error", 1)


def test_a_row_that_holds_no_document_is_found_wrong_beside_its_neighbours() -> None:
    none, empty, good = rows(validate_partition(partition([None, "", GOOD.decode()])))
    for row in (none, empty):
        assert json.loads(row["findings"])[0]["code"] == "INVALID_JSON"
        assert row["spec_hash"] is None
    assert good["accepted"]


def test_a_row_keeps_its_id_of_any_type_and_its_place() -> None:
    specs = [generate_spec(1, index).decode() for index in range(150)]
    for ids in ([f"n{index}" for index in range(150)], [{"a": index} for index in range(150)]):
        whole = partition(specs, ids=ids)
        cut = pa.concat_tables([whole.slice(0, 7), whole.slice(7)])
        result = validate_partition(cut)
        assert result.column("id").to_pylist() == ids
        assert result.column("spec_hash").to_pylist() == [engine.compile(spec).spec_hash for spec in specs]


@pytest.mark.parametrize("specs", [[], [GOOD.decode(), None]])
def test_the_columns_are_the_same_for_any_rows(specs: list[Any]) -> None:
    table = partition(specs, ids=pa.array(range(len(specs))).cast("string"))
    for given in (table, *table.to_batches()):
        assert {field.name: str(field.type) for field in validate_partition(given).schema} == {
            "id": "string",
            **RESULTS,
        }


def test_a_dry_run_tells_what_was_counted() -> None:
    options = BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64))
    good, bad = rows(validate_partition(partition([GOOD.decode(), BAD.decode()]), options))
    assert good["runs"] == 64
    assert good["fail_rate"] == good["lost"] / 64 > 0
    assert (bad["runs"], bad["lost"], bad["fail_rate"]) == (None, None, None)


def test_a_certificate_is_told_as_it_is_named() -> None:
    options = BatchOptions(
        ValidationLevel.CERTIFICATE,
        certificate=CertificateOptions(("idle",), max_runs=256),
    )
    good, bad = rows(validate_partition(partition([GOOD.decode(), BAD.decode()]), options))
    assert json.loads(good["certificate"])["spec_hash"] == good["spec_hash"]
    assert engine.canonicalize(json.loads(good["certificate"])).decode() == good["certificate"]
    assert bad["certificate"] is None


def test_a_document_that_takes_too_long_has_an_error_and_no_verdict() -> None:
    options = BatchOptions(ValidationLevel.DRY_RUN, seconds=0)
    (row,) = rows(validate_partition(partition([GOOD.decode()]), options))
    assert not row["accepted"]
    assert row["error"].startswith("DRY_RUN_TOO_SLOW: ")


@pytest.mark.parametrize("missing", ["id", "spec"])
def test_a_column_that_is_missing_is_named(missing: str) -> None:
    table = partition([GOOD.decode()]).drop_columns([missing])
    with pytest.raises(InvalidArgumentError, match=f"'{missing}'"):
        validate_partition(table)


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
