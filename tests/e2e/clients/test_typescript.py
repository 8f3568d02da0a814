"""The TypeScript client against a real server: its own tests, its samples, and its package."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import LONGEST_SECONDS
from support.repo.repository import ROOT
from support.servers.edge import serving_edge
from support.servers.processes import ServerProcess
from support.typescript_package import PACKAGE, SECONDS, build_package, run_node

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(reason="builds the package with npm"), pytest.mark.timeout(LONGEST_SECONDS)]

SAMPLES = ROOT / "clients" / "samples"
TUTORIAL = ROOT / "docs" / "tutorials" / "typescript-client.md"
MOST_LINES = 40
CUTS = "16"
"""Cut offsets of a turn in this test; `make test-clients` runs 200."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_package()


async def run_tests(tmp_path: Path, name: str, seconds: float = SECONDS, cuts: str = CUTS) -> None:
    """Run a file of tests with the addresses of a server."""
    async with serving_edge(tmp_path) as edge:
        await run_node(
            *(
                "--test",
                "--test-force-exit",
                f"--test-timeout={seconds - 10:.0f}000",
                f"build/test/{name}.test.js",
            ),
            folder=PACKAGE,
            seconds=seconds,
            PERIPETY_ADDRESS=edge.services_address,
            PERIPETY_EDGE=edge.url,
            PERIPETY_CUTS=cuts,
        )


async def run_sample(name: str, address: str) -> str:
    """Run a sample, and return what it printed."""
    program = str(PACKAGE / "build" / "samples" / f"{name}.js")
    return await run_node(program, folder=SAMPLES, PERIPETY_ADDRESS=address)


async def test_every_golden_session_is_verified() -> None:
    await run_node("--test", "build/test/transcript.test.js", folder=PACKAGE)


async def test_sessions_without_a_server(tmp_path: Path) -> None:
    await run_tests(tmp_path, "engine")


async def test_calls_and_streams(tmp_path: Path) -> None:
    await run_tests(tmp_path, "layer")


async def test_a_program_ends_when_it_has_closed_its_client(tmp_path: Path) -> None:
    await run_tests(tmp_path, "closing")


@pytest.mark.timeout(900)
async def test_a_bad_connection_changes_no_turn(tmp_path: Path) -> None:
    await run_tests(tmp_path, "faults", 880, os.environ.get("PERIPETY_CUTS", CUTS))


EXPECTED = {
    "quickstart": r"legal: tend, rest, wait\n.+\nturn 1 is stored, chain hash [0-9a-f]{64}\n",
    "stream_turns": r"0 % .+\n(.+\n)+\d+ (LOST|WON)\n",
    "batch_validate": (
        r"line 1: accepted\nline 2: accepted\nline 3: rejected: UNKNOWN_PATH .+\nline 4: accepted\n"
        r"line 5: rejected: INVALID_JSON .+\n"
    ),
    "errors": r"gone, start a new game: .+\nread the session again: .+\ncorrect page_size: .+\n",
    "policy_check": r"allow: .+\ndeny: .+\ndeny: .+\nescalate: .+\n",
    "game_loop": r"frame \d+: turn 1: .+\nframe \d+: turn 2: .+\nframe \d+: turn 3: .+\n",
}


@pytest.mark.parametrize("name", EXPECTED)
async def test_a_sample_prints_what_it_promises(tmp_path: Path, name: str) -> None:
    async with serving_edge(tmp_path) as edge:
        output = await run_sample(name, edge.services_address)
    assert re.fullmatch(EXPECTED[name], output), output


async def test_the_sample_that_loses_its_connection_gets_each_event_once(tmp_path: Path) -> None:
    async with serving_edge(tmp_path) as edge:
        lines = (await run_sample("resume", edge.services_address)).splitlines()
    restart = max(number for number, line in enumerate(lines) if line.endswith("accepted"))
    events = [line for line in lines[restart:] if not line.startswith("connection lost")]
    assert [int(line.split()[0]) for line in events] == list(range(1, len(events) + 1))
    assert events[-1].endswith("committed")


async def test_the_sample_with_a_scripted_model(tmp_path: Path) -> None:
    settings = {"MODEL_PROVIDER": "scripted", "PERIPETY_SCRIPT": str(SAMPLES / "script.toml")}
    with ServerProcess(tmp_path / "home", settings=settings) as server:
        await run_sample("scripted_llm_in_tests", server.address)


async def test_the_tutorial_reaches_a_streamed_turn(tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|js|text)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    program, expected = (text for kind, text in blocks if kind != "sh")
    assert commands[0].startswith("peripety serve")
    for name in ("package.json", "package-lock.json", "dist", "README.md", "LICENSE"):
        source, target = PACKAGE / name, tmp_path / "clients" / "typescript" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    shutil.copytree(SAMPLES, tmp_path / "clients" / "samples")
    # The package is built already, and its tools are installed.
    build = commands[1].replace("npm ci --silent\n", "").replace("npm pack", "npm pack --ignore-scripts")
    script = "set -e\n" + build + commands[2]
    made = await asyncio.to_thread(
        subprocess.run, ["sh", "-c", script], cwd=tmp_path, timeout=SECONDS, check=False
    )
    assert made.returncode == 0
    folder = tmp_path / "build" / "first-client"
    (folder / "play.js").write_text(program, encoding="utf-8")
    async with serving_edge(tmp_path) as edge:
        assert commands[3] == "node play.js\n"
        output = await run_node("play.js", folder=folder, PERIPETY_ADDRESS=edge.services_address)
    printed = output.splitlines()
    lines = [line for line in expected.splitlines() if line != "..."]
    found = iter(printed)
    assert all(any(line.startswith(wanted) for line in found) for wanted in lines), output


def test_every_sample_is_short_and_tested() -> None:
    samples = {path.stem: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.glob("samples/*.ts")}
    assert set(samples) == {*EXPECTED, "resume", "scripted_llm_in_tests"}
    assert max(samples.values()) <= MOST_LINES


def test_the_package_has_only_what_its_users_need() -> None:
    command = ["npm", "pack", "--dry-run", "--json", "--ignore-scripts"]
    packed = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=True, timeout=SECONDS)
    files = {file["path"] for file in json.loads(packed.stdout)[0]["files"]}
    assert {"README.md", "LICENSE", "package.json", "dist/node.js", "dist/node.d.ts", "dist/web.js"} <= files
    assert {"dist/engine/node.js", "dist/engine/web.js", "dist/engine/engine.wasm"} <= files
    outside = {path for path in files if not path.startswith("dist/")}
    assert outside == {"README.md", "LICENSE", "package.json"}
    assert "resolved" not in (PACKAGE / "package-lock.json").read_text("utf-8")
