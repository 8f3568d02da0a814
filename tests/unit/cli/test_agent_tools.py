"""Commands as tools of agents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.cli.agent_file import CommandTool

if TYPE_CHECKING:
    from pathlib import Path


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
