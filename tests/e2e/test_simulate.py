"""`peripety simulate` as a process: it prints its address, serves, and ends on a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest

from support.gateway import fake_server
from support.gateway.fake_server import prompt, send
from support.repo.repository import ROOT
from support.servers.processes import PERIPETY, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MULTI_TURN = ROOT / "examples" / "simulator" / "multi_turn.toml"

SLOW = """
[[responses]]
pattern = { type = "any" }
response = { text = "one two three four", pace = { tokens_per_second = 20 } }
"""


def run(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PERIPETY, "simulate", *map(str, arguments)],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def serving(home: Path, *arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and its URL."""
    with subprocess.Popen(
        [*PERIPETY, "simulate", *map(str, arguments)],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("listening on http://127.0.0.1:"), process.communicate()
            yield process, said.removeprefix("listening on ").strip()
        finally:
            process.kill()


def ask(url: str, text: str) -> str:
    response = send(url, "POST", "/v1/chat/completions", prompt(text))
    return str(response.json["choices"][0]["message"]["content"])


@pytest.mark.slow(reason="starts a process for each case and waits for its answers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, "--script", MULTI_TURN) as (process, url):
        assert "username" in ask(url, "login").lower()
        process.send_signal(number)
        _, logged = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in logged


@pytest.mark.slow(reason="starts a process for each case and waits for its answers")
def test_an_answer_under_way_is_completed_before_the_end(tmp_path: Path) -> None:
    scenario = tmp_path / "slow.toml"
    scenario.write_text(SLOW)
    with serving(tmp_path, scenario) as (process, url):
        with closing(HTTPConnection(url.removeprefix("http://"), timeout=30)) as connection:
            connection.request(
                "POST",
                "/v1/chat/completions",
                json.dumps(prompt("go", stream=True)),
                fake_server.JSON,
            )
            response = connection.getresponse()
            response.readline()
            process.send_signal(signal.SIGTERM)
            assert response.read().endswith(b"data: [DONE]\n\n")
        assert process.wait(timeout=30) == 0


def test_a_prompt_is_answered_on_standard_output(tmp_path: Path) -> None:
    result = run(tmp_path, "--script", MULTI_TURN, "-p", "login")
    assert (result.returncode, result.stderr) == (0, "")
    assert "username" in result.stdout.lower()


@pytest.mark.slow(reason="starts a process for each case and waits for its answers")
def test_a_state_file_lets_each_call_take_one_turn(tmp_path: Path) -> None:
    state = tmp_path / "state"
    said = [
        run(tmp_path, "--script", MULTI_TURN, "--state", state, "-p", prompt).stdout
        for prompt in ("login", "ann", "secret")
    ]
    at_once = run(tmp_path, "--script", MULTI_TURN, "-p", "login", "-p", "ann", "-p", "secret")
    assert len(set(said)) == 3
    assert "".join(said) == at_once.stdout


@pytest.mark.slow(reason="starts a process for each case and waits for its answers")
def test_a_scenario_that_is_not_valid_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('[[responses]]\npatern = { type = "any" }\nresponse = "y"')
    result = run(tmp_path, "--script", file)
    assert result.returncode == 2
    assert "wrong.toml:2:1" in result.stderr
    assert "patern" in result.stderr


@pytest.mark.slow(reason="starts a process for each case and waits for its answers")
def test_what_passes_through_a_proxy_is_recorded_as_a_scenario(tmp_path: Path) -> None:
    recording = tmp_path / "recorded.toml"
    with (
        serving(tmp_path, "--script", MULTI_TURN) as (_, provider),
        serving(tmp_path, "--record", recording, "--proxy", provider) as (proxy, url),
    ):
        said = ask(url, "login")
        proxy.send_signal(signal.SIGTERM)
        assert proxy.wait(timeout=30) == 0
    assert run(tmp_path, recording, "-p", "login").stdout == said + "\n"


@pytest.mark.slow(reason="starts a process for each case")
@pytest.mark.parametrize("how", ["watch", "signal", "request"])
def test_a_changed_file_is_served_without_a_restart(tmp_path: Path, how: str) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text('default_response = "before"')
    with serving(tmp_path, file, *(["--watch"] if how == "watch" else [])) as (process, url):
        assert ask(url, "hello") == "before"
        file.write_text('default_response = "after!"')
        if how == "signal":
            process.send_signal(signal.SIGHUP)
        elif how == "request":
            assert send(url, "POST", "/_simulator/reload").status == 200
        until = time.monotonic() + 60
        while ask(url, "hello") != "after!":
            assert time.monotonic() < until
            time.sleep(0.02)


@pytest.mark.slow(reason="starts a process for each case and waits for its answers")
def test_a_broken_file_leaves_the_scenario_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text('default_response = "before"')
    with serving(tmp_path, file) as (process, url):
        file.write_text("default_response = ")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        assert "not reloaded" in process.stderr.readline()
        assert ask(url, "hello") == "before"


@pytest.mark.slow(reason="starts a process for each case and waits for its answers")
def test_the_simulator_records_itself(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.toml"
    said = run(tmp_path, MULTI_TURN, "--record", recorded, "-p", "login", "-p", "ann").stdout
    assert run(tmp_path, recorded, "-p", "login", "-p", "ann").stdout == said


@pytest.mark.slow(reason="starts a process for each case")
@pytest.mark.parametrize(
    "arguments",
    [("--proxy", "http://127.0.0.1:9"), ("--proxy", "http://127.0.0.1:9", MULTI_TURN, "--record", "x")],
)
def test_a_proxy_needs_a_file_and_no_scenario(tmp_path: Path, arguments: tuple[str | Path, ...]) -> None:
    result = run(tmp_path, *arguments)
    assert result.returncode == 2
    assert "--record FILE" in result.stderr
