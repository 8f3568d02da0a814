"""A chat as a process of its own, with a model on loopback."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from support.llmsim.simulator import served
from support.servers.processes import PERIPETY, environment, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.llmsim.simulator import Served


SCENARIO = """
[[responses]]
pattern = { type = "exact", text = "fail" }
failure = { type = "auth_error" }

[[responses]]
pattern = { type = "any" }
response = "one of several words"
"""


@pytest.fixture(scope="module")
def model() -> Iterator[Served]:
    with served(SCENARIO) as server:
        yield server


def settings(home: Path, model: Served) -> dict[str, str]:
    return environment(
        home,
        MODEL_PROVIDER="generic",
        OPENAI_API_BASE=f"{model.url}/v1",
        OPENAI_API_KEY="k",
        MODEL_NAME="m",
    )


def chat(home: Path, model: Served, said: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PERIPETY, "chat", *options],
        input=said,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
        env=settings(home, model),
    )


def events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def last_asked(model: Served) -> tuple[str, int, str]:
    """The instructions, the number of messages and the last one of the newest request."""
    (last,) = model.simulator.captured.last()
    return last.request.system, last.request.messages, last.request.prompt


def test_each_line_is_a_message_of_one_conversation(tmp_path: Path, model: Served) -> None:
    done = chat(tmp_path, model, "a\nb\n", "--json", "--system", "s")
    assert done.returncode == 0, done.stderr
    completed = [event["completed"] for event in events(done) if "completed" in event]
    assert [one["conversation_turn"] for one in completed] == [1, 2]
    assert completed[1]["usage"]["input_tokens"] > completed[0]["usage"]["input_tokens"]
    assert last_asked(model) == ("s", 3, "b")


@pytest.mark.slow(reason="starts a process for each part")
def test_a_conversation_goes_on_in_another_process(tmp_path: Path, model: Served) -> None:
    assert chat(tmp_path, model, "a\n").returncode == 0
    with terminal([*PERIPETY, "chat"], settings(tmp_path, model)) as screen:
        screen.wait_for("> ")
        screen.type("c")
        screen.wait_for("one of several words")
        screen.wait_for(" in ")
        screen.type("/fork 1")
        screen.wait_for("You continue in a copy with 1 turn.")
        screen.type("/retry")
        screen.wait_for("one of several words")
        screen.type("/edit other words")
        screen.wait_for("one of several words")
        screen.wait_for("> ")
        assert last_asked(model) == ("", 1, "other words")
        screen.type("/model m")
        screen.wait_for("The next answers come from m.")
        screen.type("/model")
        screen.wait_for("from the configured model.")
        screen.type("/rewind 0")
        screen.wait_for("1 turn removed; 0 turns remain.")
        screen.type("/usage")
        screen.wait_for("0 turns: ")
        screen.type("/nothing")
        screen.wait_for("/nothing: unknown command")
        screen.type("fail")
        screen.wait_for("OPENAI_API_KEY")
        screen.type("/rewind 9")
        screen.wait_for("must be from 0 to 0")
        screen.type("d")
        screen.wait_for("one of several words")
        screen.type("/quit")
        screen.wait_for("--conversation ")
        screen.wait_for("\n")
    conversation = re.findall(r"--conversation ([0-9a-f-]{36})", screen.screen)[0]
    done = chat(tmp_path, model, "e\n/usage\n", "--conversation", conversation)
    assert "2 turns: " in done.stdout
    assert last_asked(model) == ("", 3, "e")


@pytest.mark.slow(reason="starts several processes")
def test_what_fails_is_told_and_does_not_end_a_chat_that_nobody_watches(
    tmp_path: Path, model: Served
) -> None:
    done = chat(tmp_path, model, "fail\n/nothing\nb\n")
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr
    assert "/nothing: unknown command" in done.stderr
    assert done.stdout == "one of several words\n"
    unknown = chat(tmp_path, model, "a\n", "--conversation", "nowhere")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "unknown conversation: 'nowhere'" in unknown.stderr


@pytest.mark.slow(reason="starts a process at a terminal")
def test_a_message_of_several_lines_has_the_text_of_its_files(tmp_path: Path, model: Served) -> None:
    (tmp_path / "a.txt").write_text("in the file", encoding="utf-8")
    assert chat(tmp_path, model, f'"""\nRead\n@{tmp_path}/a.txt\n"""\n').returncode == 0
    _, _, prompt = last_asked(model)
    assert prompt.startswith("Read\n@")
    assert prompt.endswith("```\nin the file\n```")
