"""A specification that is watched while it is edited."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.cli.watched_file import WatchedFile, measure_draft
from peripety.errors import InvalidArgumentError
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LONG_WAY: dict[str, Any] = json.loads((ROOT / "examples" / "long_way.json").read_bytes())


def saved(folder: Path, **changes: Any) -> str:
    file = folder / "a.json"
    file.write_text(json.dumps({**LONG_WAY, **changes}, indent=1), encoding="utf-8")
    return str(file)


def test_findings_have_lines_and_figures_name_the_personas(tmp_path: Path) -> None:
    report = measure_draft(saved(tmp_path))
    assert report.is_playable
    assert ": no findings, checked and played in " in report.lines[0]
    assert [line.split()[0] for line in report.lines[-3:]] == ["random", "greedy", "idle"]
    assert "loses 100%" in report.lines[-1]


def test_an_error_is_told_with_its_line_and_nothing_is_played(tmp_path: Path) -> None:
    report = measure_draft(saved(tmp_path, horizon="long"))
    assert not report.is_playable
    assert "1 error" in report.lines[0]
    assert " line 6 /horizon: " in report.lines[1]
    assert not any("loses" in line for line in report.lines)


@pytest.mark.parametrize("content", ["", "{", "a: 1\n"])
def test_a_file_that_is_no_document_is_a_finding(tmp_path: Path, content: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(content, encoding="utf-8")
    assert not measure_draft(str(file)).is_playable


def test_a_file_that_is_absent_or_yaml_is_told_so(tmp_path: Path) -> None:
    assert "cannot read" in measure_draft(str(tmp_path / "absent.json")).lines[0]
    (told,) = measure_draft(str(tmp_path / "a.yaml")).lines
    assert "yq -o json" in told


def test_a_save_is_noticed_once(tmp_path: Path) -> None:
    watched = WatchedFile(saved(tmp_path))
    assert not watched.has_changed()
    saved(tmp_path, horizon=23)
    assert watched.has_changed()
    watched.accept()
    assert not watched.has_changed()
    os.utime(watched.name, ns=(1, 1))
    assert watched.has_changed()


async def test_waiting_ends_with_a_save(tmp_path: Path) -> None:
    watched = WatchedFile(saved(tmp_path))
    saved(tmp_path, horizon=23)
    await watched.wait()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_key_that_names_the_schema_is_ignored_and_changes_no_hash(version: str) -> None:
    plain = {**LONG_WAY, "spec_version": version}
    named = {"$schema": "./scenario.schema.json", **plain}
    documents = [json.dumps(document).encode() for document in (plain, named)]
    assert engine.validate(documents[1]) == engine.validate(documents[0])
    one, other = (engine.compile(document) for document in documents)
    assert one.spec_hash == other.spec_hash
    assert one.document == other.document
    hashes = {result.spec_hash for result in engine.validate_many(documents)}
    assert hashes == {one.spec_hash}
    wrong = engine.validate(json.dumps({"$schema": 1, **plain}).encode())
    assert [finding.code for finding in wrong] == ["UNKNOWN_KEY"]


def test_yaml_is_refused_with_a_way_out() -> None:
    from peripety.cli.input_documents import read_specification  # noqa: PLC0415

    with pytest.raises(InvalidArgumentError, match=r"yq -o json a\.yml > a\.json"):
        read_specification("a.yml")


def test_the_schema_is_written_with_the_line_that_names_it(tmp_path: Path) -> None:
    from typer.testing import CliRunner  # noqa: PLC0415

    from peripety.cli.app import app  # noqa: PLC0415

    out = tmp_path / "scenario.schema.json"
    done = CliRunner().invoke(app, ["schema", "--out", str(out)])
    assert '"$schema": "./scenario.schema.json",' in done.stdout
    properties = json.loads(out.read_bytes())["properties"]
    assert {"$schema", "labels", "opening"} <= set(properties)
    first = json.loads(CliRunner().invoke(app, ["schema", "--version", "1.0"]).stdout)
    assert "labels" not in first["properties"]
