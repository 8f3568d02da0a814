"""The example files are valid scenarios, and their comments are true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.lint.script_lint import lint_script
from peripety.llmsim.script.files import load_script
from peripety.llmsim.script.types import ScriptedCall
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import ApiError, ApiErrorKind
from support.repo.repository import ROOT

EXAMPLES = ROOT / "examples" / "simulator"
FILES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_file())
ANY = Pattern()


def contains(text: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, text))


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_a_scenario(name: str) -> None:
    assert load_script(EXAMPLES / name).responses


@pytest.mark.parametrize("name", FILES)
def test_everything_can_happen_in_an_example(name: str) -> None:
    assert lint_script(load_script(EXAMPLES / name)) == []


def test_there_are_the_examples_that_the_guide_names() -> None:
    assert FILES == [
        "failures.toml",
        "files.json",
        "limits.toml",
        "multi_turn.toml",
        "simple.toml",
        "tools.toml",
    ]


def test_the_flows_of_the_multi_turn_example() -> None:
    login, review, fallback = load_script(EXAMPLES / "multi_turn.toml").responses
    assert [login.pattern, *(turn.expect for turn in login.turns)] == [contains("login"), ANY, ANY]
    assert [review.pattern, *(turn.expect for turn in review.turns)] == [
        contains("review"),
        ANY,
        contains("fix"),
    ]
    assert (fallback.pattern, fallback.turns) == (ANY, ())
    assert login.response is not None
    assert "username" in login.response.text
    assert fallback.response is not None
    assert '"login"' in fallback.response.text
    assert '"review"' in fallback.response.text


def test_the_simple_example_has_no_sequences() -> None:
    assert not any(rule.turns for rule in load_script(EXAMPLES / "simple.toml").responses)


def test_the_files_of_an_example_are_read() -> None:
    edit, _ = load_script(EXAMPLES / "files.json").responses
    assert edit.response is not None
    edits = [
        {"line": 1, "old": "frist", "new": "first"},
        {"line": 3, "old": None, "new": "A line at the end."},
    ]
    assert edit.response.tool_calls == (
        ScriptedCall("apply_edits", {"path": "notes.txt", "edits": edits, "reason": None}),
        ScriptedCall("write_file", {"path": "notes.txt", "text": "The first line.\nThe second line.\n"}),
    )
    assert edit.turns[0].response is not None
    assert edit.turns[0].response.text.startswith("# Edited\n")


def test_the_login_flow_goes_from_prompt_to_prompt() -> None:
    simulator = Simulator(load_script(EXAMPLES / "multi_turn.toml"))
    labels = [simulator.execute(prompt).label for prompt in ("login", "somebody", "secret", "somebody")]
    assert labels == ["response[0]", "response[0].turn[0]", "response[0].turn[1]", "response[2]"]


def test_the_review_flow_ends_where_no_fix_is_asked_for() -> None:
    simulator = Simulator(load_script(EXAMPLES / "multi_turn.toml"))
    labels = [
        simulator.execute(prompt).label for prompt in ("review", "a.py", "fix it", "review", "a.py", "no")
    ]
    entry, named = "response[1]", "response[1].turn[0]"
    assert labels == [entry, named, "response[1].turn[1]", entry, named, "response[2]"]


def test_the_calls_of_an_example_are_answered_by_their_results() -> None:
    simulator = Simulator(load_script(EXAMPLES / "tools.toml"))
    (call,) = simulator.execute("What is the time in Rome?").tool_calls
    assert call.name == "get_time"
    assert simulator.execute("", tool_results=["12:30"]).text == "That is the time there now."
    assert len(simulator.execute("compare them").tool_calls) == 2
    assert simulator.execute("", tool_results=["one", "two"]).text == "They differ in one line."


def test_the_third_try_of_an_example_succeeds() -> None:
    scenario = load_script(EXAMPLES / "failures.toml")
    simulator = Simulator(replace(scenario, failures=()))
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            simulator.execute("retry")
        assert caught.value.kind is ApiErrorKind.RATE_LIMIT
    assert simulator.execute("retry").text == "Third time lucky."


def test_three_of_ten_requests_of_an_example_fail() -> None:
    scenario = load_script(EXAMPLES / "failures.toml")
    simulator = Simulator(replace(scenario, failures=()))
    failed = 0
    for _ in range(20):
        try:
            assert simulator.execute("sometimes").text == "It worked."
        except ApiError:
            failed += 1
    assert failed == 3
