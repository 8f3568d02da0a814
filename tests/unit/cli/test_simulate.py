"""`peripety simulate` without a server: answers on standard output, and what `--check` finds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path


MULTI_TURN = ROOT / "examples" / "simulator" / "multi_turn.toml"

FLAWED = """
[[responses]]
pattern = { type = "contains", text = "a" }
response = "A"

[[responses]]
pattern = { type = "contains", text = "abc" }
response = "never"

[[responses]]
pattern = { type = "exact", text = "login" }
response = "Username:"
turns = [{ expect = { type = "exact", text = "u" }, response = "Password:" }]
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return tmp_path / "scenario.toml"


def test_each_prompt_takes_one_turn() -> None:
    result = run("--script", MULTI_TURN, "-p", "login", "-p", "ann", "-p", "secret")
    assert result.exit_code == 0
    assert result.stdout == (
        "Please enter your username:\nPlease enter your password:\nLogin successful. Welcome!\n"
    )


def test_without_a_state_file_each_call_begins_anew() -> None:
    assert run(MULTI_TURN, "-p", "login").stdout == run(MULTI_TURN, "-p", "login").stdout


def test_a_state_file_keeps_the_turn(tmp_path: Path) -> None:
    state = tmp_path / "state"
    said = [run(MULTI_TURN, "--state", state, "-p", prompt).stdout for prompt in ("login", "ann", "secret")]
    assert "".join(said) == run(MULTI_TURN, "-p", "login", "-p", "ann", "-p", "secret").stdout


def test_answers_can_be_printed_as_json() -> None:
    lines = run(MULTI_TURN, "-p", "login", "-p", "ann", "--json").stdout.splitlines()
    first, second = map(json.loads, lines)
    assert (first["label"], second["label"]) == ("response[0]", "response[0].turn[0]")
    assert first["usage"]["output"] > 0


def test_calls_of_tools_are_printed(scenario: Path) -> None:
    scenario.write_text(
        'default_response = { text = "Let me see.", tool_calls = [{ tool = "look", input = { at = "é" } }] }',
    )
    assert run(scenario, "-p", "x").stdout == 'Let me see.\n-> look {"at":"é"}\n'


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ('{ type = "rate_limit", message = "not so fast" }', "not so fast"),
        ('{ type = "network_unreachable" }', "error:"),
        ('{ type = "hang" }', "error:"),
        ('{ type = "malformed_json" }', "error:"),
        ('{ type = "stream_cut" }', "error:"),
    ],
)
def test_a_failure_is_an_error(scenario: Path, failure: str, reason: str) -> None:
    scenario.write_text(f'[[responses]]\npattern = {{ type = "any" }}\nresponse = "y"\nfailure = {failure}')
    result = run(scenario, "-p", "hello")
    assert (result.exit_code, result.stdout) == (1, "")
    assert reason in result.stderr


def test_what_nothing_matches_is_an_error_that_names_the_closest_rules(scenario: Path) -> None:
    scenario.write_text('[[responses]]\npattern = { type = "contains", text = "login" }\nresponse = "y"')
    result = run(scenario, "-p", "logout")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "responses[0]" in result.stderr
    assert "login" in result.stderr


def test_calls_are_appended_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    for _ in range(2):
        run(MULTI_TURN, "-p", "login", "--capture", file)
    calls = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [call["request"]["prompt"] for call in calls] == ["login", "login"]


def test_a_scenario_has_to_be_named_once() -> None:
    assert run("-p", "x").exit_code == 2
    assert run(MULTI_TURN, "--script", MULTI_TURN, "-p", "x").exit_code == 2


def test_a_proxy_is_not_started_for_what_is_no_base_url(tmp_path: Path) -> None:
    result = run("--proxy", "api.openai.com", "--record", tmp_path / "run.toml")
    assert result.exit_code == 2
    assert "base URL" in result.stderr


def test_nothing_is_wrong_with_the_example() -> None:
    result = run("--check", MULTI_TURN)
    assert result.exit_code == 0
    assert result.stdout.endswith("multi_turn.toml: no flaws\n")


def test_flaws_are_told_with_prompts_that_show_them(scenario: Path) -> None:
    scenario.write_text(FLAWED)
    result = run("--check", scenario)
    assert result.exit_code == 1
    assert "2 flaws" in result.stdout
    assert "error shadowed_rule responses[1]" in result.stdout
    assert '    "abc" -> responses[0]' in result.stdout
    assert "warning stalling_sequence responses[2].turns[0]" in result.stdout


def test_flaws_can_be_printed_as_json(scenario: Path) -> None:
    scenario.write_text(FLAWED)
    result = run("--check", "--json", scenario)
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [flaw["code"] for flaw in told["flaws"]] == ["shadowed_rule", "stalling_sequence"]


def test_a_warning_alone_is_no_error(scenario: Path) -> None:
    scenario.write_text(FLAWED.replace('"abc"', '"xyz"'))
    assert run("--check", scenario).exit_code == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_no_scenario_is_an_error_of_the_check(scenario: Path, as_json: bool) -> None:
    scenario.write_text('[[responses]]\npatern = { type = "any" }\nresponse = "y"')
    result = run("--check", scenario, *(["--json"] if as_json else []))
    assert result.exit_code == 1
    assert "patern" in (result.stdout if as_json else result.stderr)
