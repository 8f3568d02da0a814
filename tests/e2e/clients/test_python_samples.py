"""The samples of the Python client run as they are, and are short."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.processes import environment

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess

FOLDER = ROOT / "clients" / "python" / "samples"
INPUT = ROOT / "clients" / "samples"
MOST_LINES = 40
PRINTED = {
    "quickstart": ["compiled", "turn 1: "],
    "stream_turns": ["--- turn 1: ", "state.light: ", "RUN_STATUS_KIND_"],
    "batch_validate": ["line 1: valid", "line 3: UNKNOWN_PATH", "line 5: INVALID_JSON"],
    "errors": ["UNKNOWN_SESSION: ", "STALE_TURN: read the session again, turn 0", "page_size: "],
    "resume": ["before: 3 world_resolved", "after: 4 ", " committed"],
    "policy_check": ["keys/id: deny", "delete_file /srv/shared/plan.txt: escalate"],
    "scripted_llm_in_tests": [],
}


def test_every_sample_of_the_table_is_there() -> None:
    table = (ROOT / "clients" / "README.md").read_text(encoding="utf-8")
    assert {path.stem for path in FOLDER.glob("*.py")} == set(PRINTED)
    assert all(f"| `{name}` | `" in table for name in PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_a_sample_is_short_and_uses_the_client_alone(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    imported = {
        node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.module
    }
    own = {module for module in imported if module.startswith("peripety")}
    assert all(module.startswith(("peripety.api.", "peripety.client")) for module in own)


@pytest.mark.slow_after(3, reason="starts a program for each sample")
@pytest.mark.parametrize("name", PRINTED)
def test_a_sample_runs(scripted_server: ServerProcess, tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / f"{name}.py"],
        cwd=INPUT,
        check=False,
        capture_output=True,
        text=True,
        env=environment(tmp_path, PERIPETY_ADDRESS=scripted_server.address),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in PRINTED[name]:
        assert part in done.stdout, done.stdout
