"""The worked example of docs/scenarios.md: `make worked-example` writes what is printed and drawn there."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

from peripety import sim
from peripety.scenarios.inspecting.drawing.svg import svg
from peripety.scenarios.inspecting.inspecting import inspect
from peripety.scenarios.inspecting.model import INSPECTING_RUNS, Inspection
from peripety.scenarios.model import DryRunOptions
from peripety.workers import Workers
from support.pages import with_output
from support.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.sim import Program

__all__ = ["DRAWING", "PAGE", "SPEC", "drawn", "example"]

SPEC = ROOT / "examples" / "long_way.json"
PAGE = ROOT / "docs" / "scenarios.md"
DRAWING = ROOT / "docs" / "scenarios" / "rules.svg"


def example() -> dict[Path, bytes]:
    """The files that the worked example shows, by the core that runs here."""
    page = with_output(PAGE, "certify", str(SPEC.relative_to(ROOT)))
    return {PAGE: page, DRAWING: drawn(sim.compile(SPEC.read_bytes()))}


def drawn(program: Program) -> bytes:
    """The drawing, as the command makes it."""
    return svg(asyncio.run(_inspected(program)))


async def _inspected(program: Program) -> Inspection:
    with closing(Workers()) as workers:
        events = inspect(program, DryRunOptions(max_runs=INSPECTING_RUNS), workers)
        (found,) = [event async for event in events if isinstance(event, Inspection)]
    return found


def main() -> None:
    """Write everything."""
    DRAWING.parent.mkdir(exist_ok=True)
    for path, content in example().items():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
