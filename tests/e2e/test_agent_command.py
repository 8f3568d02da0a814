"""`peripety agent` as a process of its own: in embedded mode, and with a server."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from peripety.policy.enforcement.decision_log import read_log
from support.llmsim.simulator import served
from support.policy.proxy import SERVER, recorded, run_policy, write_policy
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
        '── measure\n   count_words {"text":"one two three"}\n   = 3\n3 words\n   used\n'
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


GUARDED = """
[[responses]]
pattern = { type = "contains", text = "Use all tools" }
response = { tool_calls = [
  { tool = "read", input = { path = "/a/b" } },
  { tool = "read", input = { path = "/b" } },
  { tool = "put", input = { path = "/a", content = "c" } },
  { tool = "drop", input = { path = "/a" } },
] }

[[responses]]
pattern = { type = "any", tool_result = { type = "contains", text = "done: drop /a" } }
response = "ready"
"""


@pytest.mark.slow(reason="starts processes: 6 s")
async def test_a_policy_decides_the_calls_of_an_agent(tmp_path: Path) -> None:
    await write_policy(tmp_path)
    path = tmp_path / "agent.toml"
    server = json.dumps([sys.executable, str(SERVER), str(tmp_path / "record")])
    path.write_text(
        'name = "n"\npolicy = "policy.json"\n'
        '[[phases]]\nid = "a"\ninput = "Use all tools"\ntools = ["read", "put", "drop"]\n'
        f"[servers]\nalpha = {server}\n"
    )
    file = tmp_path / "approvals.json"
    with served(GUARDED) as model:
        running = await asyncio.create_subprocess_exec(
            *(*PERIPETY, "agent", "run", str(path), "--approvals", str(file)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment(tmp_path, **settings(model)),
        )
        try:
            assert running.stdout is not None
            told: list[str] = []
            while "peripety policy approve" not in "".join(told):
                line = await running.stdout.readline()
                assert line, "".join(told)
                told.append(line.decode())
            approval = told[-1].partition("approve ")[2].split()[0]
            code, out = await run_policy("approve", approval, "--approvals", str(file))
            assert code == 0, out
            rest, _ = await running.communicate()
        finally:
            with suppress(ProcessLookupError):
                running.kill()
        (run,) = lines(await asyncio.to_thread(agent, tmp_path, model, "list", "--json"))
    shown = "".join(told) + rest.decode()
    assert running.returncode == 0, shown
    for expected in (
        "   = done: read /a/b",
        "   ✗ Refused by the policy: no rule allows this call of alpha/read;",
        "   ✗ Refused by the policy (rule puts):",
        "   = done: drop /a",
        "ready",
    ):
        assert expected in shown
    assert recorded(tmp_path) == ["read /a/b", "drop /a"]
    entries = [*read_log(tmp_path / "agent.decisions.jsonl")]
    assert [entry["outcome"] for entry in entries] == [
        "forwarded",
        "refused",
        "refused",
        "waiting",
        "approved",
    ]
    assert [entry["decision"] for entry in entries] == ["allow", "deny", "deny", "escalate", "escalate"]
    assert {entry["run_id"] for entry in entries} == {run["run_id"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('policy = "none"', "policy: cannot read"),
        ("[servers]\ncommands = ['a']", "servers"),
        ("[servers]\nalpha = ['no-such-program']", "cannot start the MCP server no-such-program"),
    ],
)
@pytest.mark.slow(reason="starts a process for each case: 3 s")
def test_what_is_wrong_with_a_policy_or_a_server_is_said(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(f'name = "n"\n{text}\n[[phases]]\nid = "a"\ninput = "x"\n')
    done = subprocess.run(
        [*PERIPETY, "agent", "run", str(path)],
        capture_output=True,
        check=False,
        text=True,
        env=environment(tmp_path),
    )
    assert done.returncode != 0
    assert problem in done.stderr
