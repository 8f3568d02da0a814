"""The scenarios that the engine is measured with are ones that it accepts, and play as they are meant to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.reference import SIZES, SPECS, sized_spec, write
from peripety import engine

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SPECS)
def test_a_reference_scenario_plays_without_a_rule_that_fails(name: str) -> None:
    report = engine.compile(SPECS[name]()).dry_run(runs=3 if name == "large" else 20)
    assert report.errors == ()
    assert report.errored == 0
    assert report.turns > report.runs


@pytest.mark.parametrize(("fields", "actions"), SIZES)
def test_a_scenario_has_the_size_it_is_asked_for(fields: int, actions: int) -> None:
    program = engine.compile(sized_spec(fields=fields, actions=actions))
    assert sum(len(group) for group in program.spec["state"].values()) == fields
    assert len(program.spec["actions"]) == actions


def test_most_runs_of_the_early_scenario_end_early() -> None:
    report = engine.compile(SPECS["early"]()).dry_run(runs=100)
    assert report.lost > report.runs / 2
    assert report.turns < report.runs * 25


def test_every_scenario_and_the_expressions_are_written(tmp_path: Path) -> None:
    write(tmp_path)
    names = {path.stem for path in tmp_path.iterdir()}
    assert {*SPECS, "logic"} <= names
    assert len(names) == len(SPECS) + len(SIZES) + 1
    for path in tmp_path.iterdir():
        json.loads(path.read_bytes())
