"""The programs of the tutorials run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / "tutorials" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_client_of_the_tutorial_plays_a_turn(server: ServerProcess) -> None:
    (program,) = blocks("first-client.md", "python")
    assert "127.0.0.1:50051" in program
    done = subprocess.run(
        [sys.executable, "-c", program.replace("127.0.0.1:50051", server.address)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    printed = done.stdout.splitlines()
    assert {"compile: compiled", "legal: ['tend', 'rest', 'wait']", "turn: accepted", "turn: committed"} <= {
        *printed
    }
    (shown,) = (text for text in blocks("first-client.md", "text") if "turn: committed" in text)
    assert printed[-1] == shown.splitlines()[-1]


@pytest.mark.slow(reason="starts a test run of its own")
def test_the_test_of_the_tutorial_passes(tmp_path: Path) -> None:
    (script,), (program,) = (
        blocks("first-scripted-test.md", "toml"),
        blocks("first-scripted-test.md", "python"),
    )
    (tmp_path / "login.toml").write_text(script, encoding="utf-8")
    (tmp_path / "test_login.py").write_text(program, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "pytest", "-q", "test_login.py"], check=True, cwd=tmp_path)
