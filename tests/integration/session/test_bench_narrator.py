"""Scripted narrators, good and bad, under `peripety bench-narrator`: each bad one shows as what it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.gateway.message_normalization import to_wire_name
from peripety.llmsim.script.files import script_from_document
from peripety.session.narrator_metrics import make_canary
from support.engine.specs import action, playable
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from pathlib import Path


SEED = 5
SESSIONS, TURNS = 3, 6
CLEAN: dict[str, Any] = {"narrative": "The gauge moves, and everybody looks at it.", "state_changes": []}
FAULTS = {
    "event_condition_errors",
    "variable_update_errors",
    "malformed_answers",
    "refused_calls",
    "withheld_secrets",
    "leaks",
    "unfounded_numbers",
    "repaired",
    "server_resolved",
    "dead_turns",
}


def script(*rules: dict[str, Any]) -> dict[str, Any]:
    """Return the script of a narrator: the rules, then the answers of a good one."""
    return {"responses": [*rules, {"pattern": {"type": "any"}, "response": {"json": CLEAN}}]}


def always(response: dict[str, Any]) -> dict[str, Any]:
    return {"responses": [{"pattern": {"type": "any"}, "response": response}]}


def calling(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the script of a narrator that calls a tool first, and narrates the turn with the result."""
    told = {"pattern": {"type": "any", "tool_result": {"type": "regex", "pattern": "."}}}
    call = {"tool_calls": [{"tool": tool, "input": arguments}]}
    return {
        "responses": [
            {**told, "response": {"json": CLEAN}},
            {"pattern": {"type": "any"}, "response": call},
        ],
    }


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    scenario = json.loads(playable())
    shut = {"<": [{"var": "state.a"}, -100]}
    scenario["actions"].append(action("shut", preconditions=shut))
    scenario["entities"] = [
        {"id": "p", "name": "P", "kind": "one", "playable": True},
        {"id": "q", "name": "Q", "kind": "one"},
    ]
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(scenario), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", f"sqlite:///{tmp_path / 'test.db'}")
    monkeypatch.setenv("MODEL_PROVIDER", "generic")
    monkeypatch.setenv("MODEL_NAME", "m")


@pytest.fixture
def graded(spec: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def grade(said: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with served(script_from_document(said, name="narrator")) as narrator:
            monkeypatch.setenv("OPENAI_API_BASE", f"{narrator.url}/v1")
            result = run(str(spec), "--json")
        assert result.stdout, result.stderr
        return result.exit_code, json.loads(result.stdout)

    return grade


def run(*arguments: str) -> Result:
    size = ["--sessions", str(SESSIONS), "--turns", str(TURNS), "--seed", str(SEED)]
    return CliRunner().invoke(app, ["bench-narrator", *size, *arguments])


def faults(figures: dict[str, Any]) -> set[str]:
    return {name for name in FAULTS if figures[name]}


def test_a_good_narrator_is_clean(graded: Any) -> None:
    exit_code, figures = graded(script())
    assert exit_code == 0
    assert faults(figures) == set()
    assert 0 < figures["clean_rounds"] == figures["rounds"] <= SESSIONS * TURNS
    assert figures["model_calls"] == figures["rounds"]
    assert figures["input_tokens"] > figures["rounds"]
    assert figures["seconds_p95"] >= figures["first_prose_p50"] > 0


def test_one_who_tries_what_cannot_be_done(graded: Any) -> None:
    _, figures = graded(calling(to_wire_name("action:shut"), {}))
    assert figures["event_condition_errors"] > 0
    assert faults(figures) <= {"event_condition_errors", "refused_calls"}
    assert figures["clean_rounds"] < figures["rounds"]


def test_one_who_calls_what_is_not_there(graded: Any) -> None:
    exit_code, figures = graded(calling("unheard_of", {}))
    assert exit_code == 0
    assert figures["refused_calls"] > 0
    assert faults(figures) == {"refused_calls"}


@pytest.mark.slow(reason="plays whole sessions")
def test_one_who_changes_what_is_none_of_its_business(graded: Any) -> None:
    change = {"op": "set", "path": "state.a", "value": 1000}
    exit_code, figures = graded(always({"json": CLEAN | {"state_changes": [change]}}))
    assert exit_code == 0
    assert figures["variable_update_errors"] >= figures["rounds"]
    assert figures["server_resolved"] == figures["rounds"]
    assert figures["degraded"] == {"OUTCOME_INVALID": figures["rounds"]}


@pytest.mark.slow_after(1, reason="plays whole sessions")
@pytest.mark.parametrize("text", ['{"narrative": ', "no JSON at all", '{"narrative": 5}', "[]"])
def test_one_who_gives_no_account(graded: Any, text: str) -> None:
    exit_code, figures = graded(always({"text": text}))
    assert exit_code == 0
    assert faults(figures) == {"malformed_answers", "server_resolved"}
    assert figures["server_resolved"] == figures["rounds"]
    assert figures["clean_rounds"] == 0


@pytest.mark.slow(reason="measures whole sessions")
@pytest.mark.parametrize("place", ["hidden", "q"])
def test_one_who_tells_a_secret(graded: Any, place: str) -> None:
    told = CLEAN | {"narrative": f"The gauge moves. They say {make_canary(SEED, place)}, and look at it."}
    exit_code, figures = graded(always({"json": told}))
    assert exit_code == 0
    assert figures["withheld_secrets"] >= figures["rounds"]
    assert faults(figures) == {"withheld_secrets", "server_resolved"}


@pytest.mark.slow(reason="plays many turns")
def test_one_who_makes_numbers_up(graded: Any) -> None:
    exit_code, figures = graded(always({"json": CLEAN | {"narrative": "The gauge shows 31337 by now."}}))
    assert exit_code == 0
    assert faults(figures) == {"unfounded_numbers"}
    assert figures["unfounded_numbers"] == figures["rounds"]
    assert figures["clean_rounds"] == 0


def test_one_who_is_not_there_loses_no_turn(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    result = run(str(spec), "--json", "--sessions", "1", "--turns", "2")
    assert result.exit_code == 0
    figures = json.loads(result.stdout)
    assert faults(figures) == {"server_resolved"}
    assert figures["degraded"] == {"MODEL_UNAVAILABLE": figures["rounds"]}


@pytest.mark.slow(reason="measures whole sessions")
def test_without_a_model_the_offline_one_is_measured_on_scenarios_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODEL_PROVIDER", "offline")
    monkeypatch.delenv("MODEL_NAME")
    result = run()
    assert result.exit_code == 0, result.output
    lines = {" ".join(line.split()) for line in result.stdout.splitlines()}
    assert "lost turns 0 0.0%" in lines
