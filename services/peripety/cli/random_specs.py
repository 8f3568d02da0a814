"""`peripety generate --random`: valid random specifications from a seed, as JSON Lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.cli.output import progress, sink
from peripety.scenarios.random_specs import random_spec

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["generate_random"]


def generate_random(count: int, *, seed: int, out: Path | None) -> None:
    """Write specifications as JSON Lines to a file or to standard output, each as soon as it is generated."""
    with sink(out) as lines, progress("generating", count) as advance:
        for index in range(count):
            lines.write(random_spec(seed, index) + b"\n")
            advance(1)
