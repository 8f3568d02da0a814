"""Servers that tests start for themselves: found or skipped, on a free port, with files of their own."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import NoReturn

import pytest

__all__ = ["free_port", "program"]


def program(name: str, package: str) -> str:
    """Where a program of a server is.

    Without it a test is skipped, or fails where `PERIPETY_REQUIRE_SERVERS=1` says that all must be there.

    Args:
        name: the program.
        package: the package of Debian and Ubuntu that has it.
    """
    # Debian keeps the programs of each version of PostgreSQL in a directory that is not on the path.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    path = os.pathsep.join([*map(str, reversed(versions)), os.environ.get("PATH", os.defpath)])
    return shutil.which(name, path=path) or _missing(name, package)


def _missing(name: str, package: str) -> NoReturn:
    reason = f"{name} is not installed: apt-get install {package}"
    if os.environ.get("PERIPETY_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
