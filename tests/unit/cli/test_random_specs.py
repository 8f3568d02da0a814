"""`peripety generate --random`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.scenario.spec_generator.generator import generate_spec

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["generate", *arguments])


def test_standard_output_gets_a_line_for_each() -> None:
    assert run("--random", "3", "--seed", "5").stdout_bytes.splitlines() == [
        generate_spec(5, index) for index in range(3)
    ]


def test_a_file_gets_the_same_and_more_of_them_begin_like_fewer(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = run("--random", "4", "--out", str(out))
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.read_bytes().startswith(run("--random", "3").stdout_bytes)


def test_a_text_and_chance_exclude_each_other() -> None:
    result = run("--random", "3", "--description", "a text")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--description" in result.stderr


def test_a_file_that_cannot_be_written_is_misuse(tmp_path: Path) -> None:
    result = run("--random", "3", "--out", str(tmp_path / "no" / "where"))
    assert result.exit_code == 2
    assert "cannot write" in result.stderr
