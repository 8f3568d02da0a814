"""Rule graph as a Mermaid flowchart, for pages that render it.

Edges start at actions and events; edges to endings start at quantities, even for reads. The layout of a
flowchart follows the direction of its edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.drawing.columns import columns
from peripety.scenarios.inspecting.drawing.links import links
from peripety.scenarios.inspecting.heat import LEVELS, heat_levels, told_heat
from peripety.scenarios.inspecting.model import EdgeKind, NodeKind
from peripety.scenarios.inspecting.wording import VERBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.scenarios.inspecting.model import Graph, Inspection, Node

__all__ = ["mermaid"]

_SHAPES = {
    NodeKind.QUANTITY: ("([", "])"),
    NodeKind.ACTION: ("[", "]"),
    NodeKind.SCHEDULE: ("[/", "/]"),
    NodeKind.EVENT: ("{{", "}}"),
    NodeKind.DECAY: ("{{", "}}"),
    NodeKind.LOSS: ("[[", "]]"),
    NodeKind.WIN: ("[[", "]]"),
}
_ENDINGS = frozenset({NodeKind.LOSS, NodeKind.WIN})
_COLOURS = {EdgeKind.RAISES: "#0b62b8", EdgeKind.LOWERS: "#b3245e", EdgeKind.WRITES: "#5b48b5"}
_HEAT = ("#fffaec", "#fff0cd", "#ffe4a6", "#ffd67c", "#ffc44d")
_MARKUP = frozenset("#&<>\"'`;|\\")


def mermaid(inspection: Inspection) -> str:
    """Render the flowchart; equal inspections result in equal text."""
    graph = inspection.graph
    names = {node.node_id: f"n{index}" for index, node in enumerate(graph.nodes)}
    lines = [
        "flowchart LR",
        *_nodes(inspection, names),
        *_lines(graph, names),
        *_heat(inspection, names),
    ]
    return "\n".join([*lines, ""])


def _nodes(inspection: Inspection, names: Mapping[str, str]) -> Iterator[str]:
    sides = columns(inspection.graph)
    for index, section in enumerate((*sides.left, *sides.middle, *sides.right)):
        yield f'  subgraph s{index}["{_escaped(section.heading)}"]'
        for block in section.blocks:
            for node, _ in block.nodes:
                yield f"    {names[node.node_id]}{_shape(node, told_heat(node, inspection))}"
        yield "  end"


def _shape(node: Node, heat: str) -> str:
    before, after = _SHAPES[node.kind]
    figures = f"<br/>{_escaped(heat)}" if heat else ""
    return f'{before}"{_escaped(node.label)}{figures}"{after}'


def _lines(graph: Graph, names: Mapping[str, str]) -> Iterator[str]:
    endings = {node.node_id for node in graph.nodes if node.kind in _ENDINGS}
    found = links(graph)
    for link in found:
        rule, quantity = names[link.rule], names[link.quantity]
        if link.rule in endings:
            yield f"  {quantity} -.-> {rule}"
        elif link.effect is None:
            yield f"  {rule} -.-|reads| {quantity}"
        else:
            yield f"  {rule} {'<-->' if link.reads else '-->'}|{VERBS[link.effect]}| {quantity}"
    for kind, colour in _COLOURS.items():
        alike = ",".join(str(index) for index, link in enumerate(found) if link.kind is kind)
        if alike:
            yield f"  linkStyle {alike} stroke:{colour}"
    for edge in graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            yield f"  {names[edge.source]} -.->|schedules| {names[edge.target]}"


def _heat(inspection: Inspection, names: Mapping[str, str]) -> Iterator[str]:
    if inspection.report is None:
        return
    levels = heat_levels(inspection)
    for level in range(LEVELS + 1):
        alike = [names[node_id] for node_id, found in levels.items() if found == level]
        if alike:
            look = f"fill:{_HEAT[level - 1]},color:#1b1f24" if level else "stroke-dasharray:4 3"
            yield f"  classDef h{level} {look}"
            yield f"  class {','.join(alike)} h{level}"


def _escaped(text: str) -> str:
    """Escape all markup in a text, and reduce its white space to single spaces."""
    one_line = " ".join(text.split())
    return "".join(f"#{ord(mark)};" if mark in _MARKUP else mark for mark in one_line)
