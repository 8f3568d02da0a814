"""Short runs of what `make soak-batch` and `make soak-sessions` do for as long as one likes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.processes import environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow(reason="plays for long and watches memory")


def soak(home: Path, program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{program}", *arguments],
        cwd=ROOT,
        env=environment(home) | {"PYTHONPATH": f"{ROOT}/services:{ROOT}/tests"},
        capture_output=True,
        check=False,
        timeout=110,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_memory_does_not_grow_with_the_length_of_a_batch(tmp_path: Path) -> None:
    assert soak(tmp_path, "batch_soak", "4000").count("flat") == 2


def test_memory_does_not_grow_with_the_number_of_sessions(tmp_path: Path) -> None:
    assert "flat" in soak(tmp_path, "sessions_soak", "200", "3")
