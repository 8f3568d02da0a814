"""Writes docs/reference/llmsim-conformance.md from a run."""

from __future__ import annotations

from pathlib import Path

from conformance.simulator.matrix import render
from conformance.simulator.run import Run

__all__ = ["PAGE"]

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "llmsim-conformance.md"


def main() -> None:
    """Write the page."""
    with Run() as run:
        PAGE.write_text(render(run), encoding="utf-8")


if __name__ == "__main__":
    main()
