"""`peripety graph`: the dependency graph of a scenario, with the activity of each part in simulated games."""

from __future__ import annotations

import asyncio
import math
import re
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.cli.documents import read_specification
from peripety.cli.embedded import services_at
from peripety.cli.output import require_place, results, save, write_bytes, write_json
from peripety.cli.text import in_one_line
from peripety.cli.working import result_of
from peripety.scenarios.inspecting.drawing.columns import columns
from peripety.scenarios.inspecting.drawing.labels import cells
from peripety.scenarios.inspecting.drawing.mermaid import mermaid
from peripety.scenarios.inspecting.drawing.svg import svg
from peripety.scenarios.inspecting.heat import told_heat
from peripety.scenarios.inspecting.inspecting import inspect as inspecting
from peripety.scenarios.inspecting.model import Inspection
from peripety.scenarios.inspecting.wording import told_doings, told_runs
from peripety.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.scenarios.inspecting.drawing.columns import Columns
    from peripety.scenarios.inspecting.model import Node
    from peripety.scenarios.model import DryRunOptions
    from peripety.sim import DryRunReport

__all__ = ["inspect"]

_STORED = re.compile(r"scn_[0-9a-f]{24}")
_PATIENCE = math.inf
"""Time limit for the simulation, in seconds: none, because the user sees the progress and can interrupt."""


def inspect(
    source: str,
    server: str | None,
    played: DryRunOptions | None,
    *,
    drawing: Path | None,
    as_mermaid: bool,
    as_json: bool,
) -> None:
    """Build the dependency graph of a scenario; print and save it.

    Args:
        source: a file, `-` for standard input, or the id of a stored scenario.
        server: `host:port` of a server with stored scenarios; None reads the configured database.
        played: options of the simulated games; None for no games.
        drawing: a file for the drawing, in SVG; None for no file.
        as_mermaid: True to print only a Mermaid flowchart.
        as_json: True to print only one line of JSON.
    """
    require_place(drawing)
    program = sim.compile(_specification(source, server))
    with closing(Workers()) as workers:
        found = result_of(inspecting(program, played, workers, _PATIENCE), "simulating", Inspection)
    if drawing is not None:
        save(svg(found), drawing)
    if as_mermaid:
        write_bytes(mermaid(found).rstrip().encode())
    elif as_json:
        write_json({"spec_hash": program.spec_hash, **_fields(found)})
    else:
        _tell(found)


def _specification(source: str, server: str | None) -> bytes:
    """Return the content of a file or of a stored scenario.

    A file has priority over an id of the same name.
    """
    if _STORED.fullmatch(source) and not Path(source).exists():
        return asyncio.run(_stored(source, server))
    return read_specification(source)


async def _stored(scenario_id: str, server: str | None) -> bytes:
    async with services_at(server, "gateway", "scenarios") as channel:
        wanted = pb.GetScenarioRequest(scenario_id=scenario_id)
        spec: bytes = (await ScenarioServiceStub(channel).GetScenario(wanted)).scenario.spec
        return spec


def _fields(found: Inspection) -> dict[str, Any]:
    nodes = [
        {
            "node_id": node.node_id,
            "kind": node.kind.value,
            "label": node.label,
            "condition": node.condition,
            "heat": found.heat.get(node.node_id, 0),
        }
        for node in found.graph.nodes
    ]
    edges = [
        {"from_node_id": edge.source, "to_node_id": edge.target, "kind": edge.kind.value}
        for edge in found.graph.edges
    ]
    report = {} if found.report is None else {"dry_run": _report_fields(found.report)}
    return {"name": found.name, "nodes": nodes, "edges": edges, **report}


def _report_fields(report: DryRunReport) -> dict[str, Any]:
    fields = asdict(report)
    # The nodes already carry these counts.
    del fields["detail"], fields["digest"]
    return {**fields, "fail_rate": report.fail_rate}


def _tell(found: Inspection) -> None:
    out, sides = results(), columns(found.graph)
    out.print(in_one_line(found.name), style="bold")
    if found.report is not None:
        out.print(told_runs(found))
    width = max(cells(_indented(node, depth)) for node, depth in _entries(sides))
    doings = told_doings(found.graph)
    for section in (*sides.left, *sides.middle, *sides.right):
        out.print(f"\n{section.heading}", style="bold")
        for block in section.blocks:
            for node, depth in block.nodes:
                name = _indented(node, depth)
                out.print(f"{name}{' ' * (width - cells(name))}  {told_heat(node, found)}".rstrip())
                condition = f"when {node.condition}" if node.condition else ""
                for line in filter(None, (condition, doings[node.node_id])):
                    out.print(f"{'  ' * (depth + 2)}{in_one_line(line)}", style="dim")


def _entries(sides: Columns) -> Iterator[tuple[Node, int]]:
    for section in (*sides.left, *sides.middle, *sides.right):
        for block in section.blocks:
            yield from block.nodes


def _indented(node: Node, depth: int) -> str:
    return "  " * (depth + 1) + in_one_line(node.label)
