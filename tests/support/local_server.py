"""The model server of this machine, as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def local_server(cache: Path) -> Iterator[tuple[list[str], str]]:
    """What the server prints before it listens, and its URL."""
    command = [sys.executable, "-m", "peripety.gateway.local_model_server"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            for line in process.stdout:
                if line.startswith("listening on "):
                    yield lines, line.removeprefix("listening on ").strip()
                    break
                lines.append(line)
        finally:
            process.terminate()
            assert process.wait(timeout=30) == 0
