"""The Rust client against a real server: its own tests, its samples and its tutorial."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import LONGEST_SECONDS, are_in_order, run
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess

pytestmark = [pytest.mark.slow(reason="compiles Rust"), pytest.mark.timeout(LONGEST_SECONDS)]

CRATE = ROOT / "clients" / "rust"
SAMPLES = ROOT / "clients" / "samples"
TUTORIAL = ROOT / "docs" / "tutorials" / "rust-client.md"
MOST_LINES = 40


@pytest.fixture(scope="module", autouse=True)
def _rust() -> None:
    if "PERIPETY_ALL_CLIENTS" not in os.environ:
        pytest.skip("Rust client: only `make test-clients` tests it")
    if shutil.which("cargo") is None:
        pytest.skip("Rust client: cargo is not installed")


def test_the_crate_has_no_findings_and_passes_its_tests(scripted_server: ServerProcess) -> None:
    run("cargo", "fmt", "--all", "--check", folder=CRATE)
    run("cargo", "clippy", "--quiet", "--all-targets", "--", "--deny", "warnings", folder=CRATE)
    output = run(
        *("cargo", "test", "--", "--include-ignored"),
        folder=CRATE,
        PERIPETY_ADDRESS=scripted_server.address,
        PERIPETY_PYTHON=sys.executable,
        PYTHONPATH=str(ROOT / "tests"),
    )
    assert "a_turn_that_is_cut_at_any_byte_is_played_once ... ok" in output


def test_the_scripted_sample_passes(scripted_server: ServerProcess) -> None:
    command = ("cargo", "test", "--example", "scripted_llm_in_tests", "--", "--include-ignored")
    output = run(*command, folder=CRATE, PERIPETY_ADDRESS=scripted_server.address)
    assert "1 passed" in output


def test_the_crate_can_be_packaged() -> None:
    run("cargo", "package", "--quiet", "--allow-dirty", folder=CRATE)  # compiles what it has packed
    output = run("cargo", "package", "--list", "--allow-dirty", folder=CRATE)
    assert {"src/lib.rs", "src/api/generated.rs", "README.md", "LICENSE"} <= set(output.split())
    assert "generator" not in output


EXPECTED = {
    "quickstart": r".+\nturn 1 is stored, chain hash [0-9a-f]{64}\n",
    "stream_turns": r"0 % .+\n(.+\n)+\d+ (Lost|Won|Survived)\n",
    "batch_validate": (
        r"line 1 accepted\nline 2 accepted\nline 3 rejected: UNKNOWN_PATH .+\nline 4 accepted\n"
        r"line 5 rejected: INVALID_JSON .+\n"
    ),
    "errors": r"gone, start a new game: .+\nread the session again: .+\ncorrect page_size: .+\n",
    "policy_check": r"allow: .+\ndeny: .+\ndeny: .+\nescalate: .+\n",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_prints_what_it_promises(scripted_server: ServerProcess, name: str) -> None:
    output = run_sample(name, scripted_server)
    assert re.fullmatch(EXPECTED[name], output), output


def test_the_sample_that_loses_its_connection_gets_each_event_once(scripted_server: ServerProcess) -> None:
    lines = run_sample("resume", scripted_server).splitlines()
    restart = max(number for number, line in enumerate(lines) if line.endswith("accepted"))
    assert [int(line.split()[0]) for line in lines[restart:]] == list(range(1, len(lines) - restart + 1))


def run_sample(name: str, server: ServerProcess) -> str:
    run("cargo", "build", "--quiet", "--example", name, folder=CRATE)
    target = os.environ.get("CARGO_TARGET_DIR", str(CRATE / "target"))
    return run(f"{target}/debug/examples/{name}", folder=SAMPLES, PERIPETY_ADDRESS=server.address)


def test_every_sample_is_short_and_tested() -> None:
    samples = {path.stem: path.read_text("utf-8") for path in CRATE.glob("examples/*.rs")}
    assert set(samples) == {*EXPECTED, "resume", "scripted_llm_in_tests"}
    assert max(len(text.splitlines()) for text in samples.values()) <= MOST_LINES


def test_the_tutorial_reaches_a_streamed_turn(scripted_server: ServerProcess, tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|rust|text)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    program, expected = (text for kind, text in blocks if kind != "sh")
    assert commands[0].startswith("peripety serve")
    shutil.copytree(CRATE, tmp_path / "clients" / "rust", ignore=shutil.ignore_patterns("target"))
    shutil.copytree(SAMPLES, tmp_path / "clients" / "samples")
    run("sh", "-ec", commands[1], folder=tmp_path)
    folder = tmp_path / "build" / "first-client"
    (folder / "src" / "main.rs").write_text(program, encoding="utf-8")
    settings = {"PERIPETY_ADDRESS": scripted_server.address, "CARGO_TARGET_DIR": str(CRATE / "target")}
    output = run("sh", "-ec", commands[2], folder=folder, **settings)
    assert are_in_order(expected, output), output
