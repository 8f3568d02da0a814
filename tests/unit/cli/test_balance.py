"""`peripety balance`: what it tells, what it writes, and its exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli.app import app
from support.engine.specs import as_bytes, chance, siege

if TYPE_CHECKING:
    from pathlib import Path


def run(value: dict[str, Any], target: str, *options: str) -> Result:
    arguments = ["balance", "-", "--target", target, "--max-runs", "2000", *options]
    return CliRunner().invoke(app, arguments, input=as_bytes(value))


def test_what_moved_is_told_in_a_table_that_names_the_rules() -> None:
    result = run(siege(), "60-70")
    assert result.exit_code == 0
    heading, *rows = result.stdout.splitlines()[2:]
    assert heading.split() == ["number", "before", "after", "what", "changed"]
    assert rows
    assert all("→" in row and "%)" in row for row in rows)
    assert "target 60.0% to 70.0%" in result.stdout


def test_the_specification_goes_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert run(siege(), "60-70", "--out", str(out)).exit_code == 0
    assert 0.58 <= engine.compile(out.read_bytes()).dry_run(runs=4_000).fail_rate <= 0.72


def test_json_holds_all_of_it_in_one_line() -> None:
    result = run(siege(), "60-70", "--json", "--persona", "idle")
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert told["balanced"] is True
    assert told["after"]["persona"] == "idle"
    assert 0.6 <= told["after"]["fail_rate"] <= 0.7
    assert {"path", "before", "after", "summary"} == told["edits"][0].keys()
    assert engine.validate(json.dumps(told["spec"])) == []


def test_nothing_moves_where_nothing_has_to() -> None:
    result = run(siege(), "0-100")
    assert result.exit_code == 0
    assert "no number had to be changed" in result.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_target_out_of_reach_gives_one_and_says_what_was_reached(
    options: tuple[str, ...],
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.json"
    result = run(chance(0.2), "90-95", "--out", str(out), *options)
    assert result.exit_code == 1
    assert "BALANCE_OUT_OF_REACH" in result.stdout
    assert not out.exists()


def test_the_seed_makes_it_repeatable() -> None:
    first, again, other = [run(siege(), "60-70", "--json", "--seed", seed).stdout for seed in ("1", "1", "2")]
    assert first == again
    assert first != other


@pytest.mark.parametrize("target", ["", "30", "40-30", "30-101", "a-b", "-5-10"])
def test_a_target_that_is_none_is_misuse(target: str) -> None:
    result = run(siege(), target)
    assert result.exit_code == 2
    assert "30-40" in result.stderr


@pytest.mark.parametrize("target", ["60-70", "60%-70%", " 60 - 70 % ", "60.0-70.00"])
def test_a_target_may_be_written_in_a_few_ways(target: str) -> None:
    assert json.loads(run(siege(), target, "--json").stdout)["target"] == {
        "min_fail_rate": 0.6,
        "max_fail_rate": 0.7,
    }
