"""`peripety sessions odds` and `watch`, over the database that is configured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli.app import app
from peripety.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from peripety.session.types import PlayerAction
from support.engine.specs import action, at_most, document, never
from support.session.bundles import Plan, bundle_of, play

if TYPE_CHECKING:
    from pathlib import Path


ENDING = document(
    actions=[action("act"), action("end", [{"op": "set", "path": "state.b", "value": 0}])],
    loss_conditions=[at_most("first", "state.b", 0), never("second")],
)
GOING_ON = bundle_of(play(engine.compile(ENDING), [Plan([PlayerAction("act", {})])] * 2))
ENDED = bundle_of(
    play(engine.compile(ENDING), [Plan([PlayerAction("act", {})]), Plan([PlayerAction("end", {})])]),
)


def run(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["sessions", *arguments], input=given)


@pytest.fixture(autouse=True)
def _database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", f"sqlite:///{tmp_path}/test.db")


def imported(bundle: bytes) -> str:
    result = run("import", "-", "--json", given=bundle)
    assert result.exit_code == 0, result.output
    session_id: str = json.loads(result.stdout)["session_id"]
    return session_id


def test_the_odds_name_each_end_and_what_is_done_first_counts() -> None:
    session_id = imported(GOING_ON)
    told = run("odds", session_id, "--runs", "200", "--do", "end").stdout.splitlines()
    assert told[0] == "200 futures from turn 2:"
    assert told[1].startswith("  lost first: 100.0% (95 % interval ")
    assert told[2].startswith("  lost second: 0.0%")
    assert told[3].startswith("  survived: 0.0%")


def test_the_odds_are_json_for_machines() -> None:
    session_id = imported(GOING_ON)
    told = json.loads(run("odds", session_id, "--json", "--persona", "idle", "--horizon", "1").stdout)
    assert (told["turn"], told["runs"], told["final"]) == (2, 1_000, True)
    assert [outcome["kind"] for outcome in told["outcomes"]] == ["lost", "lost"]


def test_a_session_that_has_ended_is_followed_to_its_end() -> None:
    session_id = imported(ENDED)
    told = run("watch", session_id).stdout
    assert "Turn 1" in told
    assert "Turn 2" in told
    assert told.rstrip().endswith("RUN_ENDED")


def test_what_is_followed_is_json_for_machines_and_can_begin_anywhere() -> None:
    session_id = imported(ENDED)
    every = [json.loads(line) for line in run("watch", session_id, "--json").stdout.splitlines()]
    numbers = [event["turn_event"]["sequence"] for event in every if "turn_event" in event]
    assert numbers == list(range(1, len(numbers) + 1))
    first = [event for event in every if event.get("turn_event", {}).get("turn") == 1]
    later = run("watch", session_id, "--json", "--after", str(len(first))).stdout.splitlines()
    assert [json.loads(line) for line in later] == every[len(first) :]


def test_what_cannot_be_told_is_said_with_the_way_out() -> None:
    assert isinstance(run("odds", "no-such-session").exception, NotFoundError)
    assert isinstance(run("odds", imported(ENDED)).exception, FailedPreconditionError)
    assert isinstance(run("odds", imported(GOING_ON), "--do", "unknown").exception, InvalidArgumentError)
    assert isinstance(run("watch", "no-such-session").exception, NotFoundError)
