"""`peripety graph`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.errors import SpecError
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from pathlib import Path


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


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["graph", *arguments])


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "spec.json"
    path.write_bytes(document(**PARTS))
    return str(path)


def test_it_tells_what_each_rule_does_and_how_often(source: str) -> None:
    result = run(source, "--runs", "64")
    assert result.exit_code == 0
    name, runs, *lines = result.stdout.splitlines()
    assert name == "Alpha"
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
    assert lines[at + 3].startswith("    later  100 % of turns (")
    assert lines[at + 4] == "      raises b; scheduled by act"
    assert [line.strip() for line in lines[at + 5 : at + 8]] == ["rest     never", "when b < 0", "reads b"]


def test_without_runs_only_the_rules_are_told(source: str) -> None:
    lines = run(source, "--runs", "0").stdout.splitlines()
    assert lines[:4] == ["Alpha", "", "What can be done", "  act"]


def test_json_has_the_names_of_the_api(source: str) -> None:
    (line,) = run(source, "--runs", "64", "--persona", "greedy", "--json").stdout.splitlines()
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
    assert "dry_run" not in json.loads(run(source, "--runs", "0", "--json").stdout)


def test_a_seed_makes_it_repeatable(source: str) -> None:
    first, again, other = (run(source, "--runs", "64", "--seed", seed, "--json").stdout for seed in "113")
    assert first == again != other


def test_a_drawing_is_written(source: str, tmp_path: Path) -> None:
    out = tmp_path / "rules.svg"
    result = run(source, "--runs", "64", "--svg", str(out))
    assert result.stdout.startswith("Alpha\n")
    assert out.read_bytes().startswith(b"<svg ")


def test_a_flowchart_is_printed_and_nothing_else(source: str) -> None:
    lines = run(source, "--runs", "64", "--mermaid").stdout.splitlines()
    assert lines[0] == "flowchart LR"
    assert lines[-1].startswith("  class ")


def test_standard_input_is_read() -> None:
    result = CliRunner().invoke(app, ["graph", "-", "--runs", "0"], input=document(**PARTS))
    assert result.stdout.startswith("Alpha\n")


def test_a_specification_with_errors_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("{}")
    assert isinstance(run(str(path)).exception, SpecError)


@pytest.mark.parametrize(
    "wrong",
    [("--mermaid", "--json"), ("--runs", "-1"), ("--svg", "/no/such/folder/x.svg")],
)
def test_misuse_is_refused_before_any_work(source: str, wrong: tuple[str, ...]) -> None:
    assert run(source, *wrong).exit_code == 2
