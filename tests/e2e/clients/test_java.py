"""The Java client against a real server: its own tests, its samples and its tutorial."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import LONGEST_SECONDS, are_in_order, build_lock, run
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess

pytestmark = [pytest.mark.slow(reason="compiles Java"), pytest.mark.timeout(LONGEST_SECONDS)]

MODULE = ROOT / "clients" / "java"
SAMPLES = ROOT / "clients" / "samples"
TUTORIAL = ROOT / "docs" / "tutorials" / "java-client.md"
CLASSES = f"{MODULE}/target/classes:{MODULE}/target/dependency/*"
MOST_LINES = 40


@pytest.fixture(scope="module", autouse=True)
def _java() -> None:
    if "PERIPETY_ALL_CLIENTS" not in os.environ:
        pytest.skip("Java client: only `make test-clients` tests it")
    if shutil.which("mvn") is None:
        pytest.skip("Java client: Maven is not installed")


@pytest.fixture(scope="module")
def _compiled() -> None:
    with build_lock("java"):
        run(
            "mvn",
            "-q",
            "-B",
            "compile",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            folder=MODULE,
        )


def test_the_module_passes_its_tests(scripted_server: ServerProcess) -> None:
    with build_lock("java"):
        run(
            *("mvn", "-B", "verify"),
            folder=MODULE,
            PERIPETY_ADDRESS=scripted_server.address,
            PERIPETY_PYTHON=sys.executable,
            PYTHONPATH=str(ROOT / "tests"),
        )
    reports = {path.stem: path.read_text("utf-8") for path in MODULE.glob("target/surefire-reports/*.txt")}
    assert set(reports) == {"peripety.client.ClientTest", "peripety.client.TranscriptTest"}
    assert all(
        re.search(r"Tests run: \d+, Failures: 0, Errors: 0, Skipped: 0", text) for text in reports.values()
    )


EXPECTED = {
    "Quickstart": r".+\nturn 1 is stored, chain hash [0-9a-f]{64}\n",
    "StreamTurns": r"0 % .+\n(.+\n)+\d+ RUN_STATUS_KIND_(LOST|WON|SURVIVED)\n",
    "BatchValidate": (
        r"line 1 accepted\nline 2 accepted\nline 3 rejected: UNKNOWN_PATH .+\nline 4 accepted\n"
        r"line 5 rejected: INVALID_JSON .+\n"
    ),
    "Errors": r"gone, start a new game: .+\nread the session again: .+\ncorrect page_size: .+\n",
    "PolicyCheck": r"allow: .+\ndeny: .+\ndeny: .+\nescalate: .+\n",
    "ScriptedLlmInTests": r"I listen: There is only the wind\..*\nI go on: The watch goes on\..*\n",
}


@pytest.mark.usefixtures("_compiled")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_prints_what_it_promises(scripted_server: ServerProcess, name: str) -> None:
    output = run_sample(name, scripted_server)
    assert re.fullmatch(EXPECTED[name], output), output


@pytest.mark.usefixtures("_compiled")
def test_the_sample_that_loses_its_connection_gets_each_event_once(scripted_server: ServerProcess) -> None:
    lines = run_sample("Resume", scripted_server).splitlines()
    restart = max(number for number, line in enumerate(lines) if line.endswith("accepted"))
    assert [int(line.split()[0]) for line in lines[restart:]] == list(range(1, len(lines) - restart + 1))
    assert lines[-1].endswith("committed")


def run_sample(name: str, server: ServerProcess) -> str:
    sample = MODULE / "samples" / f"{name}.java"
    # `mvn verify` of another process replaces the classes.
    with build_lock("java"):
        return run("java", "-cp", CLASSES, sample, folder=SAMPLES, PERIPETY_ADDRESS=server.address)


def test_every_sample_is_short_and_tested() -> None:
    samples = {path.stem: path.read_text("utf-8") for path in MODULE.glob("samples/*.java")}
    assert set(samples) == {*EXPECTED, "Resume"}
    assert max(len(text.splitlines()) for text in samples.values()) <= MOST_LINES


def test_the_tutorial_reaches_a_streamed_turn(scripted_server: ServerProcess, tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|java|text)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    program, expected = (text for kind, text in blocks if kind != "sh")
    assert commands[0].startswith("peripety serve")
    shutil.copytree(MODULE, tmp_path / "clients" / "java", ignore=shutil.ignore_patterns("target"))
    shutil.copytree(SAMPLES, tmp_path / "clients" / "samples")
    shutil.copytree(ROOT / "protos", tmp_path / "protos")
    shutil.copy(ROOT / "clients" / "service-config.json", tmp_path / "clients")
    run("sh", "-ec", commands[1], folder=tmp_path)
    folder = tmp_path / "build" / "first-client"
    (folder / "FirstClient.java").write_text(program, encoding="utf-8")
    output = run("sh", "-ec", commands[2], folder=tmp_path, PERIPETY_ADDRESS=scripted_server.address)
    assert are_in_order(expected, output), output
