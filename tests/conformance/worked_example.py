"""The worked example of docs/tutorials/first-scenario.md: `make worked-example` writes what is printed and
drawn there.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.core.concurrency import WorkerPool
from peripety.scenario.rule_graph.activity import inspect_program
from peripety.scenario.rule_graph.graph import DEFAULT_INSPECTION_RUNS, Inspection
from peripety.scenario.rule_graph.svg import render_svg
from support.repo.repository import ROOT, with_output

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.engine import Program


SPEC = ROOT / "examples" / "long_way.json"
PAGE = ROOT / "docs" / "tutorials" / "first-scenario.md"
DRAWING = ROOT / "docs" / "tutorials" / "scenario" / "rules.svg"


def example() -> dict[Path, bytes]:
    """The files that the worked example shows, by the core that runs here."""
    page = with_output(PAGE, "certify", str(SPEC.relative_to(ROOT)))
    return {PAGE: page, DRAWING: drawn(engine.compile(SPEC.read_bytes()))}


def drawn(program: Program) -> bytes:
    """The drawing, as the command makes it."""
    return render_svg(asyncio.run(_inspected(program)))


async def _inspected(program: Program) -> Inspection:
    with closing(WorkerPool()) as workers:
        events = inspect_program(program, DryRunOptions(max_runs=DEFAULT_INSPECTION_RUNS), workers)
        (found,) = [event async for event in events if isinstance(event, Inspection)]
    return found


def main() -> None:
    """Write everything."""
    DRAWING.parent.mkdir(exist_ok=True)
    for path, content in example().items():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
