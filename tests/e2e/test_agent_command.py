"""`peripety agent` as a process of its own: in embedded mode, and with a server."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from support.llmsim.simulator import served
from support.repo.repository import ROOT
from support.servers.processes import PERIPETY, ServerProcess, environment, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.llmsim.simulator import Served


SCENARIO = """
[[responses]]
pattern = { type = "contains", text = "in three points" }
response = "one, two, three"

[[responses]]
pattern = { type = "contains", text = "Use the tool" }
response = { tool_calls = [{ tool = "count_words", input = { text = "one two three" } }] }

[[responses]]
pattern = { type = "any", tool_result = { type = "exact", text = "3" } }
response = "3 words"

[[responses]]
pattern = { type = "contains", text = "Is that short" }
response = { json = { short = true, reason = "so few" } }

[[responses]]
pattern = { type = "contains", text = "other words" }
response = "four"
"""
EXAMPLE = str(ROOT / "examples" / "agents" / "measured_text.toml")


@pytest.fixture(scope="module")
def model() -> Iterator[Served]:
    with served(SCENARIO) as server:
        yield server


def settings(model: Served) -> dict[str, str]:
    return {
        "MODEL_PROVIDER": "openai",
        "OPENAI_API_BASE": f"{model.url}/v1",
        "OPENAI_API_KEY": "k",
        "MODEL_NAME": "gpt-5",
    }


def agent(home: Path, model: Served, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PERIPETY, "agent", *words],
        input="",
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
        env=environment(home, **settings(model)),
    )


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow(reason="starts a process for each phase")
def test_an_agent_runs_its_tools_and_shows_what_each_phase_used(tmp_path: Path, model: Served) -> None:
    done = agent(tmp_path, model, "run", EXAMPLE, "--input", "text=any text")
    assert done.returncode == 0, done.stderr
    without_figures = re.sub(r"   \d+ calls? .*\n", "   used\n", done.stdout)
    assert without_figures.startswith(
        "── outline\none, two, three\n   used\n"
        '── measure\n   count_words {"text":"one two three"}\n3 words\n   used\n'
        '── verdict\n{"short":true,"reason":"so few"}\n   used\n── done: 4 calls',
    )
    (listed,) = lines(agent(tmp_path, model, "list", "--json"))
    assert (listed["name"], listed["state"]) == ("measured text", "completed")
    shown = agent(tmp_path, model, "show", listed["run_id"])
    assert "3 words" in shown.stdout


@pytest.mark.slow(reason="starts a process for each case")
def test_a_phase_is_done_anew_and_a_run_followed_again(tmp_path: Path, model: Served) -> None:
    events = lines(agent(tmp_path, model, "run", EXAMPLE, "--json", "-i", "text=any text"))
    run_id = events[0]["run_id"]
    assert lines(agent(tmp_path, model, "run", EXAMPLE, "--json", "--resume", run_id)) == events
    anew = ("--rerun-phase", "outline", "--system", "Use other words.")
    rerun = lines(agent(tmp_path, model, "run", EXAMPLE, "--json", "--resume", run_id, *anew))
    run = rerun[-1]["completed"]
    assert (run["parent_run_id"], run["results"][0]["completion"]["text"]) == (run_id, "four")


@pytest.mark.slow(reason="starts a process for each case")
def test_an_agent_of_a_server_has_its_tools_here(tmp_path: Path, model: Served) -> None:
    with ServerProcess(tmp_path / "server", "gateway", settings(model)) as server:
        text = tmp_path / "text.txt"
        text.write_text("any text")
        options = ("--server", server.address, "-i", f"text=@{text}")
        events = lines(agent(tmp_path, model, "run", EXAMPLE, "--json", *options))
        assert events[0]["phase_started"]["input"] == "any text"
        assert "completed" in events[-1]


@pytest.mark.slow(reason="starts a process for each case")
def test_a_run_that_fails_says_why(tmp_path: Path, model: Served) -> None:
    path = tmp_path / "agent.toml"
    path.write_text('name = "n"\n[[phases]]\nid = "a"\ninput = "nobody answers this"\n')
    done = agent(tmp_path, model, "run", str(path))
    assert done.returncode == 1
    assert "error: phase a:" in done.stderr
    refused = agent(tmp_path, model, "run", str(path), "-i", "unused=1")
    assert refused.returncode == 2
    assert "inputs[unused] is not used by any phase" in refused.stderr


def agent_with_a_tool(home: Path) -> Path:
    """Write an agent with a tool that has no command."""
    path = home / "agent.toml"
    path.write_text(
        'name = "n"\n'
        '[[tools]]\nname = "count_words"\ndescription = "d"\ninput_schema = { type = "object" }\n'
        '[[phases]]\nid = "a"\ninput = "Use the tool"\ntools = ["count_words"]\n',
    )
    return path


def test_a_result_is_typed_in_at_a_terminal(tmp_path: Path, model: Served) -> None:
    words = [*PERIPETY, "agent", "run", str(agent_with_a_tool(tmp_path))]
    with terminal(words, environment(tmp_path, **settings(model))) as person:
        person.wait_for('count_words {"text":"one two three"} = ')
        person.type("3")
        person.wait_for("3 words")
        assert person.process.wait(timeout=30) == 0


@pytest.mark.slow(reason="starts a process for each command")
def test_a_tool_that_nobody_can_run_leaves_the_run_waiting(tmp_path: Path, model: Served) -> None:
    path = agent_with_a_tool(tmp_path)
    done = agent(tmp_path, model, "run", str(path))
    assert done.returncode == 1
    assert "TOOL_WITHOUT_COMMAND" in done.stderr
    (waiting,) = lines(agent(tmp_path, model, "list", "--json"))
    assert waiting["state"] == "waiting_for_tools"
