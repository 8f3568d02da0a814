"""`peripety compile` and `peripety scenarios`: into the database of the configuration, and out of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.errors import NotFoundError, SpecError
from support.engine.specs import as_bytes, chance, siege

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=given)


def compiled(spec: dict[str, Any], *options: str) -> dict[str, Any]:
    result = run("compile", "-", "--json", *options, given=as_bytes(spec))
    assert result.exit_code == 0, result.output
    told: dict[str, Any] = json.loads(result.stdout)
    return told


@pytest.fixture(autouse=True)
def _database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", database_url)


def test_a_specification_is_compiled_from_a_file_and_stored(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_bytes(as_bytes(chance(0.5)))
    result = run("compile", str(path))
    assert result.exit_code == 0, result.output
    *_, last = result.stdout.splitlines()
    assert "dry-run: " in result.stdout
    stored = compiled(chance(0.5))
    assert last == f"stored as {stored['scenario_id']}, version {stored['spec_hash']}"


def test_numbers_that_had_to_move_are_told() -> None:
    result = run("compile", "-", given=as_bytes(siege(min_fail_rate=0.6)))
    assert "missed its budget: " in result.stdout
    assert "event 'blow': weight 0.2 → " in result.stdout


def test_what_is_refused_says_why_and_is_not_stored() -> None:
    refused = run("compile", "-", "--json", given=as_bytes(chance(0.5) | {"horizon": 0}))
    assert isinstance(refused.exception, SpecError)
    assert refused.stdout == ""
    assert run("scenarios", "list").stdout == ""


def test_what_is_stored_is_listed_newest_first() -> None:
    names = [compiled(chance(0.5) | {"seed": seed})["scenario_id"] for seed in range(3)]
    _, *rows = run("scenarios", "list").stdout.splitlines()
    assert [row.split()[0] for row in rows] == names[::-1]
    (only,) = run("scenarios", "list", "--count", "1", "--json").stdout.splitlines()
    assert json.loads(only)["scenario_id"] == names[2]


def test_a_scenario_is_shown_rule_by_rule_with_its_versions() -> None:
    first = compiled(chance(0.5))
    second = compiled(chance(0.6), "--version-of", first["scenario_id"])
    shown = run("scenarios", "show", first["scenario_id"]).stdout
    assert "  event 'strike': effects" not in shown
    assert "  loss 'gone': when a ≤ 0\n" in shown
    assert "  initial a: 1\n" in shown
    rows = [line.split()[0] for line in shown.splitlines()]
    assert rows[-2:] == [second["spec_hash"], first["spec_hash"]]


def test_a_specification_comes_out_as_it_went_in() -> None:
    first = compiled(chance(0.5))
    compiled(chance(0.6), "--version-of", first["scenario_id"])
    version = ("--version", first["spec_hash"])
    given = run("scenarios", "show", first["scenario_id"], *version, "--json").stdout_bytes
    assert json.loads(given) == chance(0.5)
    assert compiled(json.loads(given))["spec_hash"] == first["spec_hash"]


def test_what_is_deleted_is_gone() -> None:
    scenario_id = compiled(chance(0.5))["scenario_id"]
    assert run("scenarios", "delete", scenario_id).stdout == f"{scenario_id} is deleted\n"
    for command in ("show", "delete"):
        assert isinstance(run("scenarios", command, scenario_id).exception, NotFoundError)


def test_what_is_stored_is_inspected_by_its_id() -> None:
    stored = compiled(chance(0.5))
    result = run("graph", stored["scenario_id"], "--runs", "64", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["spec_hash"] == stored["spec_hash"]
    assert isinstance(run("graph", f"scn_{'0' * 24}").exception, NotFoundError)


def test_a_scenario_is_changed_by_a_text_and_what_differs_is_told() -> None:
    scenario_id = compiled(siege())["scenario_id"]
    changed = run("amend", scenario_id, "make it longer")
    assert changed.exit_code == 0, changed.output
    lines = changed.stdout.splitlines()
    assert lines[-3:-1] == ["  changed", "    horizon 15 → 22"]
    assert lines[-1].startswith(f"stored as {scenario_id}, version ")
    told = json.loads(run("amend", scenario_id, "-", "--json", given=b"make it shorter").stdout)
    assert told["scenario"]["spec"]["horizon"] == 15
    assert [edit["summary"] for edit in told["edits"]] == ["horizon 22 → 15"]


def test_a_change_that_cannot_be_made_says_why_and_leaves_the_scenario() -> None:
    stored = compiled(siege())
    refused = run("amend", stored["scenario_id"], "add a third gauge")
    assert isinstance(refused.exception, SpecError)
    assert [finding.code for finding in refused.exception.findings] == ["AMENDMENT_NOT_UNDERSTOOD"]
    assert json.loads(run("scenarios", "show", stored["scenario_id"], "--json").stdout) == stored["spec"]
