"""Programs of other languages that a test builds or runs."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_SECONDS = 1500
"""Longest time of a program: the first build downloads and compiles the libraries."""


def run(*command: str | Path, folder: Path, **settings: str) -> str:
    """Run a program, and return what it printed.

    Args:
        command: the program and its arguments.
        folder: the working directory.
        settings: further environment variables.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def are_in_order(expected: str, output: str) -> bool:
    """Return True if lines of the output begin with the expected lines, in this order. `...` is any lines."""
    found = iter(output.splitlines())
    lines = [line for line in expected.splitlines() if line != "..."]
    return all(any(line.startswith(wanted) for line in found) for wanted in lines)
