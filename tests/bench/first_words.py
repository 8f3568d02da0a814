"""Time from a clean clone to the first words of a story: `make bench-first-words`.

Prints seconds and processor seconds. The package cache should be warm, and the machine idle.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.repo.repository import ROOT

LIMIT_SECONDS = 60


def main() -> int:
    """Clone the repository, run `make play`, and print the time of the first words; 1 if it is too long."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        began = time.monotonic()
        game = subprocess.Popen(
            ["make", "--no-print-directory", "play"],
            cwd=clone,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert game.stdout is not None
        words = next((line.strip() for line in game.stdout if line.strip()), "")
        seconds = time.monotonic() - began
        # The processor time of a process counts when it has ended, so make has to wait for its own.
        os.killpg(game.pid, signal.SIGINT)
        game.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(
        f"first words after {seconds:.0f} s (at most {LIMIT_SECONDS} on two idle cores): {words}\n"
        f"processor time until then: {used.ru_utime + used.ru_stime:.0f} s\n"
    )
    return int(not words or seconds > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
