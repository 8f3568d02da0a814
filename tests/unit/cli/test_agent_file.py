"""Agent files: contents and errors.

Commands as tools of agents.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.cli.agent_file import CommandTool, read_agent
from peripety.errors import InvalidArgumentError
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path


WHOLE = """
name = "n"
system = "s"
options = { model = "m", stop_sequences = ["x"], cache = { ttl = "1h" }, response_cache = "use" }
history = { strategy = "refuse", max_turns = 3 }
budget = { max_calls = 2, max_dollars = 0.25, max_seconds = 1.5 }

[[tools]]
name = "gauge"
description = "d"
input_schema = { "$file" = "schema.json" }
command = ["./gauge", "-v"]
timeout_seconds = 3

[[phases]]
id = "a"
system = { "$file" = "texts/system.md" }
input = "{{x}}"
tools = ["gauge"]
schema = { "$file" = "schema.json" }
options = { temperature = 1, max_output_tokens = 5 }
max_tool_rounds = 4
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "system.md").write_text("be a\n")
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    return tmp_path


def written(home: Path, text: str) -> Path:
    path = home / "agent.toml"
    path.write_text(text)
    return path


def problems(home: Path, text: str) -> list[tuple[str, str]]:
    path = written(home, text)
    with pytest.raises(InvalidArgumentError) as caught:
        read_agent(path)
    assert str(path) in str(caught.value)
    return [(one.field.removeprefix(f"{path}: "), one.reason) for one in caught.value.violations]


def test_everything_that_a_file_can_say(home: Path) -> None:
    agent = read_agent(written(home, WHOLE))
    manifest, (phase,) = agent.manifest, agent.manifest.phases
    assert (manifest.name, manifest.system, manifest.options.model) == ("n", "s", "m")
    assert manifest.options.cache.ttl == gateway.CACHE_TTL_ONE_HOUR
    assert manifest.options.response_cache == gateway.RESPONSE_CACHE_MODE_USE
    assert manifest.history.strategy == gateway.HISTORY_STRATEGY_REFUSE
    assert json.loads(manifest.tools[0].input_schema) == {"type": "object"}
    assert (phase.phase_id, phase.system, phase.input_template) == ("a", "be a\n", "{{x}}")
    assert (list(phase.tool_names), phase.max_tool_rounds, phase.options.temperature) == (["gauge"], 4, 1.0)
    assert (phase.schema.name, json.loads(phase.schema.document)) == ("a", {"type": "object"})
    assert agent.budget is not None
    assert (agent.budget.max_cost.pico_units, agent.budget.max_time.ToMilliseconds()) == (
        250_000_000_000,
        1500,
    )
    command = agent.commands["gauge"]
    assert (command.words, command.directory, command.seconds) == (("./gauge", "-v"), home, 3)


def test_everything_that_is_wrong_is_named_at_once_with_its_key(home: Path) -> None:
    found = problems(
        home,
        """
        system = 1
        options = { temperature = -1, modle = "m" }
        budget = { max_calls = "many" }
        [[phases]]
        id = "a"
        inptu = "x"
        schema = { "$file" = "../elsewhere.json" }
        """,
    )
    assert [place for place, _ in found] == [
        "phases[0].schema",
        "name",
        "system",
        "options.temperature",
        "options.modle",
        "budget.max_calls",
        "phases[0].input",
        "phases[0].inptu",
    ]
    assert dict(found)["name"] == "is required"
    assert dict(found)["options.modle"] == "is not a known key"
    assert "outside" in dict(found)["phases[0].schema"]


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("budget.max_calls", "99999999999"),
        ("budget.max_tokens", "9223372036854775807"),
        ("budget.max_tokens", "99999999999999999999"),
        ("budget.max_dollars", "1e300"),
        ("budget.max_dollars", "inf"),
        ("budget.max_seconds", "1e300"),
        ("budget.max_seconds", "nan"),
        ("history.max_turns", "2147483648"),
        ("options.temperature", "nan"),
        ("options.seed", "9007199254740992"),
        ("options.max_output_tokens", "2147483648"),
        ("options.budget.max_seconds", "inf"),
    ],
)
def test_a_number_that_no_request_can_hold_is_named(home: Path, place: str, number: str) -> None:
    text = f'name = "n"\n{place} = {number}\n[[phases]]\nid = "a"\ninput = "x"\n'
    assert [at for at, _ in problems(home, text)] == [place]


@pytest.mark.parametrize("text", ["name = ", "\udc80"], ids=["toml", "utf-8"])
def test_what_is_no_toml_is_refused(home: Path, text: str) -> None:
    path = home / "agent.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidArgumentError, match=r"agent file .* is not valid"):
        read_agent(path)
    with pytest.raises(InvalidArgumentError, match=r"agent file .* is not valid"):
        read_agent(home / "missing.toml")


def test_a_phase_is_found_by_its_id(home: Path) -> None:
    agent = read_agent(written(home, WHOLE))
    assert agent.phase("a").system == "be a\n"
    with pytest.raises(InvalidArgumentError, match="use one of a"):
        agent.phase("b")


def test_the_examples_can_be_read() -> None:
    examples = sorted((ROOT / "examples" / "agents").glob("*.toml"))
    assert examples
    for path in examples:
        assert read_agent(path).manifest.phases


async def result(home: Path, program: str, arguments: str = "{}", seconds: float = 20) -> tuple[str, bool]:
    command = CommandTool((sys.executable, "-c", program), home, seconds)
    given = await command.run_call(gateway.ToolCall(call_id="c", arguments=arguments.encode()))
    assert given.call_id == "c"
    return given.text, given.is_error


async def test_a_command_gets_the_arguments_and_what_it_prints_is_the_result(tmp_path: Path) -> None:
    program = "import json, os, sys; print(json.load(sys.stdin)['a'], os.getcwd())"
    assert await result(tmp_path, program, '{"a": 1}') == (f"1 {tmp_path}", False)


async def test_a_command_need_not_read_its_arguments(tmp_path: Path) -> None:
    assert await result(tmp_path, "print('ok')", '"' + "a" * 500_000 + '"') == ("ok", False)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import sys; sys.exit('broken')", "failed with exit code 1: broken"),
        ("print('a' * 300_000)", "more than 262,144 bytes"),
    ],
)
async def test_a_command_that_fails_says_so_to_the_model(tmp_path: Path, program: str, told: str) -> None:
    text, is_error = await result(tmp_path, program)
    assert told in text
    assert is_error


async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    program = "import subprocess; subprocess.run(['sleep', '60'])"
    text, is_error = await result(tmp_path, program, seconds=0.05)
    assert "longer than 0.05 s" in text
    assert is_error


async def test_a_command_that_is_not_there_is_an_error_of_the_tool(tmp_path: Path) -> None:
    given = await CommandTool(("./missing",), tmp_path, 1).run_call(gateway.ToolCall(call_id="c"))
    assert "cannot be run" in given.text
    assert given.is_error
