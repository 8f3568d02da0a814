"""`peripety replay`: what it prints, and what it returns."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli.app import app
from peripety.errors import InvalidArgumentError
from peripety.session.types import PlayerAction
from support.engine.specs import document
from support.repo.repository import ROOT
from support.session.bundles import Plan, bundle_of, play

if TYPE_CHECKING:
    from pathlib import Path


GAME = play(engine.compile(document()), [Plan([PlayerAction("act", {})])] * 3)
BUNDLE = bundle_of(GAME)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["replay", *arguments])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(BUNDLE)
    return path


def test_a_bundle_that_is_right_gives_zero(bundle: Path) -> None:
    result = run(str(bundle))
    assert result.exit_code == 0
    verdict, about, turns = result.stdout.splitlines()
    assert verdict == "the bundle is right"
    assert f"specification {GAME.program.spec_hash[:12]}, no certificate" in about
    assert turns == (
        f"  3 of 3 turns replayed on the {engine.BACKEND} core, 0 of them differ;"
        f" chain {GAME.header().chain_hash[:12]}"
    )


def test_a_bundle_that_was_changed_gives_one_and_says_what_differs(bundle: Path) -> None:
    bundle.write_bytes(BUNDLE.replace(b'"after":12', b'"after":13', 1))
    result = run(str(bundle))
    assert result.exit_code == 1
    assert result.stdout.startswith("the bundle is wrong\n")
    assert "1 of them differ" in result.stdout
    assert "line 4: error TURN_DIFFERS /events/1/changes/0/after: recorded 13, computed 12" in result.stdout
    assert "error BUNDLE_CHANGED" in result.stdout
    assert "fix: " in result.stdout


def test_in_json_it_is_one_line(bundle: Path) -> None:
    fine = json.loads(run(str(bundle), "--json").stdout)
    assert (fine["right"], fine["turns"], fine["mismatches"], fine["findings"]) == (True, 3, 0, [])
    assert fine["header"]["chain_hash"] == GAME.header().chain_hash
    bundle.write_bytes(BUNDLE[:-5])
    result = run(str(bundle), "--json")
    (found,) = json.loads(result.stdout)["findings"]
    assert result.exit_code == 1
    assert (found["line"], found["code"]) == (6, "BUNDLE_CHANGED")
    assert found["remedy"]


def test_what_cannot_be_read_is_misuse(tmp_path: Path) -> None:
    result = run(str(tmp_path / "none"))
    assert isinstance(result.exception, InvalidArgumentError)


def test_the_program_in_the_documentation_verifies_a_bundle(
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = (ROOT / "docs" / "reference" / "bundle-format.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(bundle.parent)
    exec(compile(program, "bundle-format.md", "exec"), {"canonical": engine.canonicalize})  # noqa: S102 - it is ours
    bundle.write_bytes(BUNDLE.replace(b'"after":12', b'"after":13'))
    with pytest.raises(AssertionError):
        exec(compile(program, "bundle-format.md", "exec"), {"canonical": engine.canonicalize})  # noqa: S102 - it is ours
