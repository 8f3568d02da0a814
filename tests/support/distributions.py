"""Built distributions, and an environment with one of them installed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Distributions:
    """What is published of `peripety`."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Installation:
    """An environment with the wheel in it; the test's own environment lends the libraries it needs."""

    home: Path
    site: Path

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, away from the tree."""
        program = str(self.home / "bin" / command[0])
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.home,
            check=check,
            capture_output=True,
            text=True,
            env={"HOME": str(self.home), "PERIPETY_SIMCORE": os.environ.get("PERIPETY_SIMCORE", "auto")},
        )
