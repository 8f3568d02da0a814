"""Balancing at the command line: what one process writes, others accept."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.processes import PERIPETY, environment

if TYPE_CHECKING:
    from pathlib import Path


SPEC = ROOT / "examples" / "scenario.json"


def peripety(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PERIPETY, *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(home),
    )


@pytest.mark.slow(reason="starts a process for each command")
def test_what_was_balanced_is_valid_and_is_lost_as_often_as_wanted(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    made = peripety(tmp_path, "balance", SPEC, "--target", "55-65", "--max-runs", "2000", "--out", out)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("balanced: the random persona loses ")
    assert peripety(tmp_path, "validate", out).returncode == 0
    played = peripety(tmp_path, "dry-run", out, "--runs", "2000", "--seed", "99", "--json")
    assert 0.52 <= json.loads(played.stdout)["fail_rate"] <= 0.68
    again = peripety(tmp_path, "balance", out, "--target", "54-66", "--max-runs", "2000")
    assert "no number had to be changed" in again.stdout


@pytest.mark.slow(reason="starts several processes")
def test_misuse_is_told_in_a_sentence(tmp_path: Path) -> None:
    for arguments in ((SPEC, "--target", "often"), (tmp_path / "absent.json", "--target", "30-40")):
        refused = peripety(tmp_path, "balance", *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "Traceback" not in refused.stderr
