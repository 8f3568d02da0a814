"""`peripety sessions`: what is stored is listed, shown, forked, rewound, compared and deleted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli.app import app
from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.session.types import PlayerAction
from support.session.bundles import Plan, bundle_of, play
from support.session.sessions import FATEFUL

if TYPE_CHECKING:
    from pathlib import Path


BUNDLE = bundle_of(play(engine.compile(FATEFUL), [Plan([PlayerAction("act", {})])] * 3))


def run(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["sessions", *arguments], input=given)


def told(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


@pytest.fixture
def session_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session of three turns, stored."""
    monkeypatch.setenv("PERIPETY_DATABASE_URL", f"sqlite:///{tmp_path}/test.db")
    result = run("import", "-", "--json", given=BUNDLE)
    assert result.exit_code == 0, result.output
    name: str = json.loads(result.stdout)["session_id"]
    return name


def test_sessions_are_listed_newest_first_with_what_they_were_forked_from(session_id: str) -> None:
    fork = told("fork", session_id)["session_id"]
    head, *rows = run("list").stdout.splitlines()
    assert head.split()[:2] == ["session", "name"]
    assert [row.split()[0] for row in rows] == [fork[:8], session_id[:8]]
    assert rows[0].split()[-1] == session_id[:8]
    (only,) = run("list", "--count", "1", "--json").stdout.splitlines()
    assert json.loads(only)["parent_session_id"] == session_id
    assert run("list", "--scenario", "other").stdout == ""


def test_a_session_is_shown_with_its_turns_as_somebody_sees_it(session_id: str) -> None:
    lines = run("show", session_id).stdout.splitlines()
    assert lines[0] == f"Session {session_id}, seed 7, turn 3"
    assert "  a: 4" in lines
    assert "  b: 1" in lines
    assert [line.split()[:2] for line in lines[-3:]] == [["1", "act"], ["2", "act"], ["3", "act"]]
    assert "private" not in run("show", session_id).stdout
    assert '  private: {"p": {"x": 1}}' in run("show", session_id, "--as", "p").stdout
    assert told("show", session_id)["state"]["a"] == 4


def test_the_start_of_an_id_and_latest_are_enough(session_id: str) -> None:
    assert run("show", session_id[:8]).stdout.startswith(f"Session {session_id},")
    fork = told("fork", session_id[:8])["session_id"]
    assert told("show", "latest")["session_id"] in {fork, session_id}
    assert run("compare", session_id[:8], fork[:8]).exit_code == 0
    assert told("odds", session_id[:8], "--runs", "8")["runs"] == 8
    assert isinstance(run("show", "nothing").exception, NotFoundError)


@pytest.mark.slow(reason="creates sessions until two ids begin alike")
def test_an_id_that_two_sessions_begin_with_is_refused(session_id: str) -> None:
    for _ in range(17):
        told("fork", session_id)
    # Of 18 ids, two begin with the same of 16 digits.
    refused = [run("show", digit).exception for digit in "0123456789abcdef"]
    assert any("sessions begin with" in str(one) for one in refused if one is not None)


def test_a_question_is_answered_from_the_record(session_id: str) -> None:
    assert run("ask", session_id, "How much a is there?").stdout == "A: 4. [turn 3]\n"
    assert told("ask", session_id, "How much x is there?", "--as", "p")["turns"] == [0]
    unknown = run("ask", session_id, "How much x is there?")
    assert unknown.exit_code == 1
    assert unknown.stdout.startswith("The record does not answer that. You can ask")


def test_a_fork_begins_where_it_is_told_to(session_id: str) -> None:
    fork = told("fork", session_id, "--turn", "1", "--seed", "9")
    assert (fork["turn"], fork["seed"], fork["parent_turn"], fork["state"]["a"]) == (1, 9, 1, 2)
    result = run("fork", session_id)
    assert result.stdout.endswith(f": a fork of {session_id} after turn 3, seed 7\n")
    assert "  forked from " in run("show", fork["session_id"]).stdout


def test_a_rewind_takes_the_last_turns_back(session_id: str) -> None:
    assert run("rewind", session_id, "1").stdout == f"{session_id}: at turn 1 again, ongoing\n"
    assert told("show", session_id)["state"]["a"] == 2
    assert isinstance(run("rewind", session_id, "1").exception, InvalidArgumentError)


def test_two_sessions_are_compared_from_where_they_part(session_id: str) -> None:
    fork = told("fork", session_id, "--turn", "1")["session_id"]
    lines = run("compare", session_id, fork).stdout.splitlines()
    assert lines[0] == "in common: 1 turn"
    assert "  state.a: 4 | 2" in lines
    assert [line for line in lines if line.startswith("turn")] == ["turn 2", "turn 3"]
    assert all(session_id in line for line in lines if "act" in line)
    answer = told("compare", session_id, fork)
    assert answer["common_turn"] == 1
    assert {"path": "state.a", "here": 4, "there": 2} in answer["differences"]
    assert run("compare", session_id, session_id).stdout == "in common: 3 turns\n"


def test_a_deleted_session_is_gone_and_its_fork_is_not(session_id: str) -> None:
    fork = told("fork", session_id)["session_id"]
    assert run("delete", session_id).stdout == f"{session_id} is deleted\n"
    assert isinstance(run("show", session_id).exception, NotFoundError)
    assert told("show", fork)["turn"] == 3
