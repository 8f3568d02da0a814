"""A short run of what `make soak-batch` does for as long as one likes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from support.processes import environment
from support.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_memory_does_not_grow_with_the_length_of_a_batch(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.batch_soak", "4000"],
        cwd=ROOT,
        env=environment(tmp_path) | {"PYTHONPATH": f"{ROOT}/services:{ROOT}/tests"},
        capture_output=True,
        check=False,
        timeout=110,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("flat") == 2
