"""What tests of the repository look at: the repository as a stranger gets it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked_files() -> list[Path]:
    """Every file of the repository that git tracks."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def text_of(path: Path) -> str:
    """The text of a file; of a binary one, what can be read as text."""
    return path.read_text(encoding="utf-8", errors="replace")
