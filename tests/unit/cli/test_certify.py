"""`peripety certify`: what it prints, what it writes, and what it returns."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.errors import SpecError
from support.engine.specs import as_bytes
from support.scenario.batches import contest

if TYPE_CHECKING:
    from pathlib import Path


FEW = ("--persona", "greedy", "--max-runs", "64")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["certify", *arguments])


@pytest.fixture
def fair(tmp_path: Path) -> str:
    path = tmp_path / "fair.json"
    path.write_bytes(as_bytes(contest()))
    return str(path)


@pytest.fixture
def unfair(tmp_path: Path) -> str:
    path = tmp_path / "unfair.json"
    path.write_bytes(as_bytes(contest(negativity_budget={"min_fail_rate": 0.99})))
    return str(path)


def test_a_fair_scenario_gives_zero_and_a_table(fair: str) -> None:
    result = run(fair, *FEW)
    assert result.exit_code == 0
    first, heads, *rows = result.stdout.splitlines()
    assert first == "Alpha: certified"
    assert heads.split()[:3] == ["persona", "runs", "lost"]
    assert [row.split()[0] for row in rows[:2]] == ["random", "greedy"]
    assert rows[2] == "target: the random persona loses 10.0% to 100.0%"


def test_an_unfair_one_gives_one_and_says_why(unfair: str) -> None:
    result = run(unfair, *FEW)
    assert result.exit_code == 1
    assert result.stdout.startswith("Alpha: refused\n")
    assert "error TOO_EASY /negativity_budget/min_fail_rate: " in result.stdout


def test_the_certificate_is_printed_and_written_as_it_is_hashed(fair: str, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    printed = run(fair, *FEW, "--out", str(out), "--json").stdout_bytes
    assert out.read_bytes() == printed
    told = run(fair, *FEW).stdout.splitlines()[-1]
    assert told == f"certificate {hashlib.sha256(printed.strip()).hexdigest()}"
    assert json.loads(printed)["options"] == {
        "horizon": 6,
        "max_runs": 64,
        "personas": ["random", "greedy"],
        "seed": 7,
    }


def test_options_are_those_of_the_certificate(fair: str) -> None:
    given = ("--persona", "idle", "--max-runs", "100", "--seed", "3", "--horizon", "4", "--json")
    options = json.loads(run(fair, *given).stdout)["options"]
    assert options == {"horizon": 4, "max_runs": 100, "personas": ["idle", "random"], "seed": 3}


def test_a_report_is_written(fair: str, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    assert run(fair, *FEW, "--html", str(html)).exit_code == 0
    assert html.read_bytes().startswith(b"<!DOCTYPE html>\n<html")


def test_a_check_gives_zero_or_one(fair: str, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    run(fair, *FEW, "--out", str(certificate))
    right = run("--check", str(certificate), fair)
    assert (right.exit_code, right.stdout) == (0, "the certificate is right\n")
    certificate.write_bytes(certificate.read_bytes().replace(b"certified", b"refused"))
    wrong = run("--check", str(certificate), fair, "--json")
    assert wrong.exit_code == 1
    (found,) = json.loads(wrong.stdout)["findings"]
    assert found["path"] == "/verdict"


def test_a_check_takes_no_options_of_its_own(fair: str) -> None:
    assert run("--check", fair, fair, "--seed", "1").exit_code == 2


@pytest.mark.parametrize("option", [("--max-runs", "63"), ("--max-runs", "9605"), ("--horizon", "1001")])
def test_options_out_of_range_are_misuse(fair: str, option: tuple[str, str]) -> None:
    result = run(fair, *option)
    assert result.exit_code == 2
    assert option[0] in result.stderr


@pytest.mark.parametrize("option", ["--out", "--html"])
@pytest.mark.parametrize("place", [".", "nowhere/a"])
def test_a_file_that_cannot_be_written_is_misuse_before_any_work(
    tmp_path: Path,
    option: str,
    place: str,
) -> None:
    result = run("not even looked for", option, str(tmp_path / place))
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


def test_a_wrong_document_raises_its_findings(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"{}")
    assert isinstance(run(str(tmp_path / "bad.json")).exception, SpecError)
