"""The programs of the tutorials run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.processes import environment

if TYPE_CHECKING:
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


def _run_shell(script: str, folder: Path, home: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euc", script],
        capture_output=True,
        check=False,
        text=True,
        cwd=folder,
        env=home,
        timeout=90,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def _find_approval(folder: Path, home: dict[str, str]) -> str:
    """Return the list of waiting calls as soon as one waits."""
    for _ in range(30):  # a command takes most of a second
        listed = subprocess.run(
            ["peripety", "policy", "approvals"],
            capture_output=True,
            check=False,
            text=True,
            cwd=folder,
            env=home,
        )
        if "denied in" in listed.stdout:
            return listed.stdout
    raise AssertionError(listed)


def _assert_shown(printed: str, shown: str, folder: Path) -> None:
    """Check that each line of a page was printed; `…` stands for the folder."""
    told = printed.replace(str(folder), "…")
    for line in shown.splitlines():
        assert line in told, printed


@pytest.mark.slow(reason="installs a package of npm and starts processes: 30 s")
def test_the_tools_of_the_tutorial_are_guarded(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("NOT TESTED: the tutorial of guarded tools needs npm")
    page = "guard-tools.md"
    home = environment(tmp_path / "home") | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "1000",
    }
    install, tools, constitution, strict = blocks(page, "sh")
    _, roles, compiled, calls, approval, moved, replayed = blocks(page, "text")
    (program,) = blocks(page, "python")
    folder = tmp_path / "guarded"
    folder.mkdir()
    installed = subprocess.run(
        ["bash", "-euc", install],
        capture_output=True,
        check=False,
        text=True,
        cwd=folder,
        env=home,
        timeout=90,
    )
    if installed.returncode:
        pytest.skip(
            f"NOT TESTED: the tutorial of guarded tools needs the registry of npm: {installed.stderr}"
        )
    _assert_shown(_run_shell(tools, folder, home), roles, folder)
    _assert_shown(_run_shell(constitution, folder, home), compiled, folder)
    (folder / "agent.py").write_text(program, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "agent.py"], cwd=folder, env=home, text=True, stdout=subprocess.PIPE
    ) as agent:
        try:
            listed = _find_approval(folder, home)
            approved = _run_shell(f"peripety policy approve {listed.partition(':')[0]}", folder, home)
            printed, _ = agent.communicate(timeout=60)
        finally:
            agent.kill()
    assert agent.returncode == 0
    _assert_shown(printed, calls.partition("\n")[2] + moved, folder)
    shown = [line for line in approval.splitlines() if "denied in" not in line and not line.startswith("$")]
    _assert_shown(listed + approved, "\n".join(line.partition(": ")[2] or line for line in shown), folder)
    assert (folder / "files" / "notes" / "today.txt").read_text() == "Water the plants.\n"
    assert (folder / "files" / "notes" / "tomorrow.txt").read_text() == "Rest."
    _assert_shown(_run_shell(strict, folder, home), replayed, folder)
