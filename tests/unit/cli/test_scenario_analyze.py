"""`peripety balance`: console output, written files and exit codes.

`peripety certify`: console output, written files and exit codes.

`peripety graph`: console output, written files and refused inputs.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli.app import app
from peripety.cli.output import SHOWS_EVERYTHING
from peripety.errors import SpecError
from support.engine.specs import action, as_bytes, at_most, chance, document, event, never, siege
from support.scenario.batches import contest

if TYPE_CHECKING:
    from pathlib import Path


def run_balance(value: dict[str, Any], target: str, *options: str) -> Result:
    arguments = ["balance", "-", "--target", target, "--max-runs", "2000", *options]
    return CliRunner().invoke(app, arguments, input=as_bytes(value))


def test_what_moved_is_told_in_a_table_that_names_the_rules() -> None:
    result = run_balance(siege(), "60-70")
    assert result.exit_code == 0
    heading, *rows = result.stdout.splitlines()[2:]
    assert heading.split() == ["number", "before", "after", "what", "changed"]
    assert rows
    assert all("→" in row and "%)" in row for row in rows)
    assert "target 60.0% to 70.0%" in result.stdout


def test_the_specification_goes_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert run_balance(siege(), "60-70", "--out", str(out)).exit_code == 0
    assert 0.58 <= engine.compile(out.read_bytes()).dry_run(runs=4_000).fail_rate <= 0.72


def test_json_holds_all_of_it_in_one_line() -> None:
    result = run_balance(siege(), "60-70", "--json", "--persona", "idle")
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert told["balanced"] is True
    assert told["after"]["persona"] == "idle"
    assert 0.6 <= told["after"]["fail_rate"] <= 0.7
    assert {"path", "before", "after", "summary"} == told["edits"][0].keys()
    assert engine.validate(json.dumps(told["spec"])) == []


def test_nothing_moves_where_nothing_has_to() -> None:
    result = run_balance(siege(), "0-100")
    assert result.exit_code == 0
    assert "no number had to be changed" in result.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_target_out_of_reach_gives_one_and_says_what_was_reached(
    options: tuple[str, ...],
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.json"
    result = run_balance(chance(0.2), "90-95", "--out", str(out), *options)
    assert result.exit_code == 1
    assert "BALANCE_OUT_OF_REACH" in result.stdout
    assert not out.exists()


def test_the_seed_makes_it_repeatable() -> None:
    first, again, other = [
        run_balance(siege(), "60-70", "--json", "--seed", seed).stdout for seed in ("1", "1", "2")
    ]
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("target", "way_out"), [("5-9", "within 30-100, or set min_fail_rate"), ("60-70", None)]
)
def test_a_target_outside_of_the_band_of_the_specification_names_a_way_out(
    target: str, way_out: str | None
) -> None:
    result = run_balance(siege(min_fail_rate=0.3), target)
    assert ("TOO_EASY" in result.stderr) == (way_out is not None)
    assert (way_out or "") in result.stderr
    assert "unchanged" not in result.stderr


@pytest.mark.parametrize("target", ["", "30", "40-30", "30-101", "a-b", "-5-10"])
def test_a_target_that_is_none_is_misuse(target: str) -> None:
    result = run_balance(siege(), target)
    assert result.exit_code == 2
    assert "30-40" in result.stderr


@pytest.mark.parametrize("target", ["60-70", "60%-70%", " 60 - 70 % ", "60.0-70.00"])
def test_a_target_may_be_written_in_a_few_ways(target: str) -> None:
    assert json.loads(run_balance(siege(), target, "--json").stdout)["target"] == {
        "min_fail_rate": 0.6,
        "max_fail_rate": 0.7,
    }


FEW = ("--persona", "greedy", "--max-runs", "64")


def run_certify(*arguments: str) -> Result:
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
    result = run_certify(fair, *FEW)
    assert result.exit_code == 0
    first, heads, *rows = result.stdout.splitlines()
    assert first == "Alpha: certified"
    assert heads.split()[:3] == ["persona", "runs", "lost"]
    assert [row.split()[0] for row in rows[:2]] == ["random", "greedy"]
    assert rows[2] == "target: the random persona loses 10.0% to 100.0%"


def test_an_unfair_one_gives_one_and_says_why(unfair: str) -> None:
    result = run_certify(unfair, *FEW)
    assert result.exit_code == 1
    assert result.stdout.startswith("Alpha: refused\n")
    assert "error TOO_EASY /negativity_budget/min_fail_rate: " in result.stdout


def test_the_certificate_is_printed_and_written_as_it_is_hashed(fair: str, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    printed = run_certify(fair, *FEW, "--out", str(out), "--json").stdout_bytes
    assert out.read_bytes() == printed
    told = run_certify(fair, *FEW).stdout.splitlines()[-1]
    assert told == f"certificate {hashlib.sha256(printed.strip()).hexdigest()}"
    assert json.loads(printed)["options"] == {
        "horizon": 6,
        "max_runs": 64,
        "personas": ["random", "greedy"],
        "seed": 7,
    }


def test_options_are_those_of_the_certificate(fair: str) -> None:
    given = ("--persona", "idle", "--max-runs", "100", "--seed", "3", "--horizon", "4", "--json")
    options = json.loads(run_certify(fair, *given).stdout)["options"]
    assert options == {"horizon": 4, "max_runs": 100, "personas": ["idle", "random"], "seed": 3}


def test_a_report_is_written(fair: str, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    assert run_certify(fair, *FEW, "--html", str(html)).exit_code == 0
    assert html.read_bytes().startswith(b"<!DOCTYPE html>\n<html")


def test_a_check_gives_zero_or_one(fair: str, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    run_certify(fair, *FEW, "--out", str(certificate))
    right = run_certify("--check", str(certificate), fair)
    assert (right.exit_code, right.stdout) == (0, "the certificate matches\n")
    certificate.write_bytes(certificate.read_bytes().replace(b"certified", b"refused"))
    wrong = run_certify("--check", str(certificate), fair, "--json")
    assert wrong.exit_code == 1
    (found,) = json.loads(wrong.stdout)["findings"]
    assert found["path"] == "/verdict"


def test_a_check_takes_no_options_of_its_own(fair: str) -> None:
    assert run_certify("--check", fair, fair, "--seed", "1").exit_code == 2


@pytest.mark.parametrize("option", [("--max-runs", "63"), ("--max-runs", "9605"), ("--horizon", "1001")])
def test_options_out_of_range_are_misuse(fair: str, option: tuple[str, str]) -> None:
    result = run_certify(fair, *option)
    assert result.exit_code == 2
    assert option[0] in result.stderr


@pytest.mark.parametrize("option", ["--out", "--html"])
@pytest.mark.parametrize("place", [".", "nowhere/a"])
def test_a_file_that_cannot_be_written_is_misuse_before_any_work(
    tmp_path: Path,
    option: str,
    place: str,
) -> None:
    result = run_certify("not even looked for", option, str(tmp_path / place))
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


def test_a_wrong_document_raises_its_findings(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"{}")
    assert isinstance(run_certify(str(tmp_path / "bad.json")).exception, SpecError)


LATER = {
    "op": "schedule",
    "id": "later",
    "after": 1,
    "effects": [{"op": "inc", "path": "state.b", "value": 1}],
}
PARTS = {
    "actions": [
        action("act", [{"op": "inc", "path": "state.a", "value": 1}, LATER]),
        action("rest", preconditions={"<": [{"var": "state.b"}, 0]}),
    ],
    "random_events": [event("fall", [{"op": "dec", "path": "state.a", "value": 20}])],
    "loss_conditions": [at_most("low", "state.a", 0), never("other")],
    "horizon": 3,
}


def run_graph(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["graph", *arguments])


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "spec.json"
    path.write_bytes(document(**PARTS))
    return str(path)


def test_it_tells_what_each_rule_does_and_how_often(source: str) -> None:
    result = run_graph(source, "--runs", "64")
    assert result.exit_code == 0
    note, name, runs, *lines = result.stdout.splitlines()
    assert (note, name) == (SHOWS_EVERYTHING, "Alpha")
    assert runs.startswith("64 runs of at most 3 turns, random persona: ")
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "What can be done",
        "What there is",
        "What may happen",
        "Lost when",
    ]
    at = lines.index("What can be done")
    assert lines[at + 1].split(maxsplit=1)[0] == "act"
    assert lines[at + 2] == "    raises a; schedules later"
    assert lines[at + 3].startswith("    later  100% of turns (")
    assert lines[at + 4] == "      raises b; scheduled by act"
    assert [line.strip() for line in lines[at + 5 : at + 8]] == ["rest     never", "when b < 0", "reads b"]


def test_without_runs_only_the_rules_are_told(source: str) -> None:
    lines = run_graph(source, "--runs", "0").stdout.splitlines()
    assert lines[:5] == [SHOWS_EVERYTHING, "Alpha", "", "What can be done", "  act"]


def test_json_has_the_names_of_the_api(source: str) -> None:
    (line,) = run_graph(source, "--runs", "64", "--persona", "greedy", "--json").stdout.splitlines()
    told = json.loads(line)
    assert set(told) == {"spec_hash", "name", "nodes", "edges", "dry_run"}
    assert told["nodes"][0] == {
        "node_id": "state.a",
        "kind": "quantity",
        "label": "a",
        "condition": "",
        "heat": told["nodes"][0]["heat"],
    }
    assert {"from_node_id": "/actions/0", "to_node_id": "state.a", "kind": "raises"} in told["edges"]
    heat = {node["node_id"]: node["heat"] for node in told["nodes"]}
    assert heat["/loss_conditions/0"] == told["dry_run"]["lost"]
    assert told["dry_run"]["persona"] == "greedy"
    assert "dry_run" not in json.loads(run_graph(source, "--runs", "0", "--json").stdout)


def test_a_seed_makes_it_repeatable(source: str) -> None:
    first, again, other = (
        run_graph(source, "--runs", "64", "--seed", seed, "--json").stdout for seed in "113"
    )
    assert first == again != other


def test_a_drawing_is_written(source: str, tmp_path: Path) -> None:
    out = tmp_path / "rules.svg"
    result = run_graph(source, "--runs", "64", "--svg", str(out))
    assert result.stdout.startswith(f"{SHOWS_EVERYTHING}\nAlpha\n")
    assert out.read_bytes().startswith(b"<svg ")


def test_a_flowchart_is_printed_and_nothing_else(source: str) -> None:
    lines = run_graph(source, "--runs", "64", "--mermaid").stdout.splitlines()
    assert lines[0] == "flowchart LR"
    assert lines[-1].startswith("  class ")


def test_standard_input_is_read() -> None:
    result = CliRunner().invoke(app, ["graph", "-", "--runs", "0"], input=document(**PARTS))
    assert result.stdout.startswith(f"{SHOWS_EVERYTHING}\nAlpha\n")


def test_a_specification_with_errors_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("{}")
    assert isinstance(run_graph(str(path)).exception, SpecError)


@pytest.mark.parametrize(
    "wrong",
    [("--mermaid", "--json"), ("--runs", "-1"), ("--svg", "/no/such/folder/x.svg")],
)
def test_misuse_is_refused_before_any_work(source: str, wrong: tuple[str, ...]) -> None:
    assert run_graph(source, *wrong).exit_code == 2
