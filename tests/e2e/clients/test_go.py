"""The Go client against a real server: its own tests, its samples, its game and its tutorial."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import LONGEST_SECONDS, are_in_order, run
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess

pytestmark = [pytest.mark.slow(reason="compiles Go"), pytest.mark.timeout(LONGEST_SECONDS)]

MODULE = ROOT / "clients" / "go"
GAME = MODULE / "game"
SAMPLES = ROOT / "clients" / "samples"
TUTORIAL = ROOT / "docs" / "tutorials" / "go-client.md"
MOST_LINES = 40


@pytest.fixture(scope="module", autouse=True)
def _go() -> None:
    if shutil.which("go") is None:
        pytest.skip("Go client: Go is not installed")
    if subprocess.run(["go", "list", "-m"], cwd=MODULE, capture_output=True, check=False).returncode:
        pytest.skip("Go client: Go is older than 1.24, or the modules cannot be downloaded")


@pytest.mark.parametrize("module", [MODULE, GAME], ids=lambda module: module.name)
def test_a_module_has_no_findings_and_passes_its_tests(scripted_server: ServerProcess, module: Path) -> None:
    assert not run("gofmt", "-l", ".", folder=module)
    run("go", "mod", "tidy", "-diff", folder=module)
    run("go", "vet", "./...", folder=module)
    output = run(
        *("go", "test", "-count=1", "-timeout=800s", "-v", "."),
        folder=module,
        PERIPETY_ADDRESS=scripted_server.address,
        PERIPETY_PYTHON=sys.executable,
        PYTHONPATH=str(ROOT / "tests"),
    )
    assert "--- PASS" in output
    assert "--- SKIP" not in output, output


EXPECTED = {
    "quickstart": r".+\nturn 1 is stored, chain hash [0-9a-f]{64}\n",
    "stream_turns": r"0 % .+\n(.+\n)+\d+ RUN_STATUS_KIND_(LOST|WON|SURVIVED)\n",
    "batch_validate": (
        r"line 1 accepted\nline 2 accepted\nline 3 rejected: UNKNOWN_PATH .+\nline 4 accepted\n"
        r"line 5 rejected: INVALID_JSON .+\n"
    ),
    "errors": r"gone, start a new game: .+\nread the session again: .+\ncorrect page_size: .+\n",
    "policy_check": r"allow: .+\ndeny: .+\ndeny: .+\nescalate: .+\n",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_prints_what_it_promises(scripted_server: ServerProcess, tmp_path: Path, name: str) -> None:
    output = run_sample(name, scripted_server, tmp_path)
    assert re.fullmatch(EXPECTED[name], output), output


def test_the_sample_that_loses_its_connection_gets_each_event_once(
    scripted_server: ServerProcess, tmp_path: Path
) -> None:
    lines = run_sample("resume", scripted_server, tmp_path).splitlines()
    restart = max(number for number, line in enumerate(lines) if line.endswith("accepted"))
    assert [int(line.split()[0]) for line in lines[restart:]] == list(range(1, len(lines) - restart + 1))
    assert lines[-1].endswith("committed")


def run_sample(name: str, server: ServerProcess, tmp_path: Path) -> str:
    run("go", "build", "-o", tmp_path / name, f"./samples/{name}", folder=MODULE)
    return run(tmp_path / name, folder=SAMPLES, PERIPETY_ADDRESS=server.address)


def test_the_sample_with_a_scripted_model(scripted_server: ServerProcess, tmp_path: Path) -> None:
    program = tmp_path / "narration.test"
    run("go", "test", "-c", "-o", program, "./samples/scripted_llm_in_tests", folder=MODULE)
    output = run(program, "-test.v", folder=SAMPLES, PERIPETY_ADDRESS=scripted_server.address)
    assert "--- PASS" in output


def test_every_sample_is_short_and_tested() -> None:
    samples = {path.parent.name: path.read_text("utf-8") for path in MODULE.glob("samples/*/*.go")}
    assert set(samples) == {*EXPECTED, "resume", "scripted_llm_in_tests"}
    assert max(len(text.splitlines()) for text in samples.values()) <= MOST_LINES


def test_the_tutorial_reaches_a_streamed_turn(scripted_server: ServerProcess, tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|go|text)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    program, expected = (text for kind, text in blocks if kind != "sh")
    assert commands[0].startswith("peripety serve")
    unused = shutil.ignore_patterns("game", "samples", "*_test.go")
    shutil.copytree(MODULE, tmp_path / "clients" / "go", ignore=unused)
    shutil.copytree(SAMPLES, tmp_path / "clients" / "samples")
    run("sh", "-ec", commands[1], folder=tmp_path)
    folder = tmp_path / "build" / "first-client"
    (folder / "main.go").write_text(program, encoding="utf-8")
    output = run("sh", "-ec", commands[2], folder=folder, PERIPETY_ADDRESS=scripted_server.address)
    assert are_in_order(expected, output), output
