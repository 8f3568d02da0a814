"""Programs of other languages that a test builds or runs."""

from __future__ import annotations

import fcntl
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from support.repo.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@contextmanager
def build_lock(name: str) -> Iterator[None]:
    """Hold a lock, so that one process of a test run at a time builds in a folder that they share."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def are_in_order(expected: str, output: str) -> bool:
    """Return True if lines of the output begin with the expected lines, in this order. `...` is any lines."""
    found = iter(output.splitlines())
    lines = [line for line in expected.splitlines() if line != "..."]
    return all(any(line.startswith(wanted) for line in found) for wanted in lines)
