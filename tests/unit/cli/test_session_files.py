"""`peripety sessions export`, `import` and `replay`: into the database that is configured, and out of it.

`peripety sessions odds` and `watch`, over the database that is configured.

`peripety replay`: what it prints, and what it returns.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli.app import app
from peripety.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from peripety.session.types import PlayerAction
from support.engine.specs import action, at_most, document, never
from support.repo.repository import ROOT
from support.session.bundles import Plan, bundle_of, play

if TYPE_CHECKING:
    from pathlib import Path


BUNDLE = bundle_of(play(engine.compile(document()), [Plan([PlayerAction("act", {})])] * 3))


def run(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["sessions", *arguments], input=given)


@pytest.fixture(autouse=True)
def _database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", f"sqlite:///{tmp_path}/test.db")


def import_bundle(*options: str) -> str:
    result = run("import", "-", "--json", *options, given=BUNDLE)
    assert result.exit_code == 0, result.output
    session_id: str = json.loads(result.stdout)["session_id"]
    return session_id


def test_what_goes_in_comes_out_to_the_byte(tmp_path: Path) -> None:
    session_id = import_bundle()
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
    session_id = import_bundle()
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


ENDING = document(
    actions=[action("act"), action("end", [{"op": "set", "path": "state.b", "value": 0}])],
    loss_conditions=[at_most("first", "state.b", 0), never("second")],
)
GOING_ON = bundle_of(play(engine.compile(ENDING), [Plan([PlayerAction("act", {})])] * 2))
ENDED = bundle_of(
    play(engine.compile(ENDING), [Plan([PlayerAction("act", {})]), Plan([PlayerAction("end", {})])]),
)


def import_session(bundle: bytes) -> str:
    result = run("import", "-", "--json", given=bundle)
    assert result.exit_code == 0, result.output
    session_id: str = json.loads(result.stdout)["session_id"]
    return session_id


def test_the_odds_name_each_end_and_what_is_done_first_counts() -> None:
    session_id = import_session(GOING_ON)
    told = run("odds", session_id, "--runs", "200", "--do", "end").stdout.splitlines()
    assert told[0] == "200 futures from turn 2:"
    assert told[1].startswith("  lost first: 100.0% (95% interval ")
    assert told[2].startswith("  lost second: 0.0%")
    assert told[3].startswith("  survived: 0.0%")


def test_the_odds_are_json_for_machines() -> None:
    session_id = import_session(GOING_ON)
    told = json.loads(run("odds", session_id, "--json", "--persona", "idle", "--horizon", "1").stdout)
    assert (told["turn"], told["runs"], told["final"]) == (2, 1_000, True)
    assert [outcome["kind"] for outcome in told["outcomes"]] == ["lost", "lost"]


def test_a_session_that_has_ended_is_followed_to_its_end() -> None:
    session_id = import_session(ENDED)
    told = run("watch", session_id).stdout
    assert "Turn 1" in told
    assert "Turn 2" in told
    assert told.rstrip().endswith("RUN_ENDED")


def test_what_is_followed_is_json_for_machines_and_can_begin_anywhere() -> None:
    session_id = import_session(ENDED)
    every = [json.loads(line) for line in run("watch", session_id, "--json").stdout.splitlines()]
    numbers = [event["turn_event"]["sequence"] for event in every if "turn_event" in event]
    assert numbers == list(range(1, len(numbers) + 1))
    first = [event for event in every if event.get("turn_event", {}).get("turn") == 1]
    later = run("watch", session_id, "--json", "--after", str(len(first))).stdout.splitlines()
    assert [json.loads(line) for line in later] == every[len(first) :]


def test_what_cannot_be_told_is_said_with_the_way_out() -> None:
    assert isinstance(run("odds", "no-such-session").exception, NotFoundError)
    assert isinstance(run("odds", import_session(ENDED)).exception, FailedPreconditionError)
    assert isinstance(
        run("odds", import_session(GOING_ON), "--do", "unknown").exception, InvalidArgumentError
    )
    assert isinstance(run("watch", "no-such-session").exception, NotFoundError)


GAME = play(engine.compile(document()), [Plan([PlayerAction("act", {})])] * 3)
REPLAYED_BUNDLE = bundle_of(GAME)


def run_replay(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["replay", *arguments])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(REPLAYED_BUNDLE)
    return path


def test_a_bundle_that_is_right_gives_zero(bundle: Path) -> None:
    result = run_replay(str(bundle))
    assert result.exit_code == 0
    verdict, about, turns = result.stdout.splitlines()
    assert verdict == "the bundle is valid"
    assert f"specification {GAME.program.spec_hash[:12]}, no certificate" in about
    assert turns == (
        f"  3 of 3 turns replayed on the {engine.BACKEND} core, 0 of them differ;"
        f" chain {GAME.header().chain_hash[:12]}"
    )


def test_a_bundle_that_was_changed_gives_one_and_says_what_differs(bundle: Path) -> None:
    bundle.write_bytes(REPLAYED_BUNDLE.replace(b'"after":12', b'"after":13', 1))
    result = run_replay(str(bundle))
    assert result.exit_code == 1
    assert result.stdout.startswith("the bundle is invalid\n")
    assert "1 of them differ" in result.stdout
    assert (
        "line 4: error TURN_DIFFERS /events/1/changes/0/after: turn 2: recorded 13, computed 12"
        in result.stdout
    )
    assert "error BUNDLE_CHANGED" in result.stdout
    assert "fix: " in result.stdout


def test_in_json_it_is_one_line(bundle: Path) -> None:
    fine = json.loads(run_replay(str(bundle), "--json").stdout)
    assert (fine["right"], fine["turns"], fine["mismatches"], fine["findings"]) == (True, 3, 0, [])
    assert fine["header"]["chain_hash"] == GAME.header().chain_hash
    bundle.write_bytes(REPLAYED_BUNDLE[:-5])
    result = run_replay(str(bundle), "--json")
    (found,) = json.loads(result.stdout)["findings"]
    assert result.exit_code == 1
    assert (found["line"], found["code"]) == (6, "BUNDLE_CHANGED")
    assert found["remedy"]


def test_what_cannot_be_read_is_misuse(tmp_path: Path) -> None:
    result = run_replay(str(tmp_path / "none"))
    assert isinstance(result.exception, InvalidArgumentError)


def test_the_program_in_the_documentation_verifies_a_bundle(
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = (ROOT / "docs" / "reference" / "bundle-format.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(bundle.parent)
    exec(compile(program, "bundle-format.md", "exec"), {"canonical": engine.canonicalize})  # noqa: S102 - it is ours
    bundle.write_bytes(REPLAYED_BUNDLE.replace(b'"after":12', b'"after":13'))
    with pytest.raises(AssertionError):
        exec(compile(program, "bundle-format.md", "exec"), {"canonical": engine.canonicalize})  # noqa: S102 - it is ours
