"""`peripety sessions export`, `import` and `replay`: into the database that is configured, and out of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli.app import app
from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.session.types import PlayerAction
from support.engine.specs import document
from support.session.bundles import Plan, bundle_of, play

if TYPE_CHECKING:
    from pathlib import Path


BUNDLE = bundle_of(play(engine.compile(document()), [Plan([PlayerAction("act", {})])] * 3))


def run(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["sessions", *arguments], input=given)


@pytest.fixture(autouse=True)
def _database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", f"sqlite:///{tmp_path}/test.db")


def imported(*options: str) -> str:
    result = run("import", "-", "--json", *options, given=BUNDLE)
    assert result.exit_code == 0, result.output
    session_id: str = json.loads(result.stdout)["session_id"]
    return session_id


def test_what_goes_in_comes_out_to_the_byte(tmp_path: Path) -> None:
    session_id = imported()
    out = tmp_path / "session.jsonl"
    assert run("export", session_id, "--out", str(out)).exit_code == 0
    assert out.read_bytes() == BUNDLE
    assert run("export", session_id).stdout_bytes == BUNDLE
    shorter = run("export", session_id, "--last-turn", "1").stdout_bytes
    assert len(shorter.splitlines()) == len(BUNDLE.splitlines()) - 2


def test_an_import_tells_what_the_session_is_called(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(BUNDLE)
    result = run("import", str(path))
    assert result.exit_code == 0
    assert result.stdout.endswith(": scenario, turn 3\n")


def test_a_stored_session_is_played_again() -> None:
    session_id = imported()
    result = run("replay", session_id)
    assert result.exit_code == 0
    assert result.stdout == f"3 turns replayed on the {engine.BACKEND} core, 0 of them differ\n"
    *turns, end = map(
        json.loads,
        run("replay", session_id, "--first-turn", "2", "--json").stdout.splitlines(),
    )
    assert [turn["turn_replayed"]["turn"] for turn in turns] == [2, 3]
    assert end["completed"]["turns"] == 2


def test_a_bundle_that_is_not_right_is_not_imported() -> None:
    result = run("import", "-", given=BUNDLE[:-3])
    assert isinstance(result.exception, InvalidArgumentError)
    assert result.exception.code == "BUNDLE_INVALID"
    assert result.exception.violations[0].field == "line 6"


def test_a_session_that_is_not_there_leaves_no_file(tmp_path: Path) -> None:
    out = tmp_path / "session.jsonl"
    assert isinstance(run("export", "none", "--out", str(out)).exception, NotFoundError)
    assert not out.exists()
    assert isinstance(run("replay", "none").exception, NotFoundError)
    assert run("export", "none", "--out", str(tmp_path / "none" / "file")).exit_code == 2


def test_the_help_says_what_a_bundle_gives_away() -> None:
    assert "the whole state, including what no player may see" in " ".join(
        run("export", "--help").stdout.split(),
    )
