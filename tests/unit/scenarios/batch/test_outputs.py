"""Results of parts: there as a whole or not at all, once, whoever wrote them how often."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from peripety.errors import FailedPreconditionError
from peripety.scenario.batch import BatchOptions, partitions
from peripety.scenario.batch.partitions import FORMS, JobOutput, Totals, split_inputs
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import ValidationLevel
from support.engine.specs import document

if TYPE_CHECKING:
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
