"""Rule graph as a Mermaid flowchart, for pages that render it, and as text.

Edges start at actions and events; edges to endings start at quantities, even for reads. The layout of a
flowchart follows the direction of its edges.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from peripety.scenario.rule_graph.activity import LEVELS, activity_levels, describe_activity
from peripety.scenario.rule_graph.graph import EdgeKind, NodeKind
from peripety.scenario.rule_graph.shapes import assign_columns, bundle_edges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.scenario.rule_graph.graph import GraphNode, Inspection, RuleGraph


_PASSIVE = {
    EdgeKind.READS: "read by",
    EdgeKind.RAISES: "raised by",
    EdgeKind.LOWERS: "lowered by",
    EdgeKind.WRITES: "changed by",
    EdgeKind.SCHEDULES: "scheduled by",
}
VERBS = {**{kind: kind.value for kind in EdgeKind}, EdgeKind.WRITES: "changes"}
"""The verb for each kind of edge."""


def describe_rules(graph: RuleGraph) -> dict[str, str]:
    """Describe the edges of each node, by its id: `reads a; raises b, c`."""
    labels = {node.node_id: node.label for node in graph.nodes}
    doings: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for kind in EdgeKind:
        for edge in graph.edges:
            if edge.kind is kind:
                doings[edge.source][VERBS[kind]].append(labels[edge.target])
                doings[edge.target][_PASSIVE[kind]].append(labels[edge.source])
    return {
        node_id: "; ".join(f"{verb} {', '.join(names)}" for verb, names in doings[node_id].items())
        for node_id in labels
    }


def describe_nodes(inspection: Inspection) -> dict[str, str]:
    """Describe each node in one line, by its id."""
    doings = describe_rules(inspection.graph)
    told = {}
    for node in inspection.graph.nodes:
        parts = (
            doings[node.node_id] or "touches nothing",
            f"when {node.condition}" if node.condition else "",
            describe_activity(node, inspection),
        )
        told[node.node_id] = f"{node.kind.value} {node.label}: {'; '.join(filter(None, parts))}"
    return told


def describe_runs(inspection: Inspection) -> str:
    """Describe the runs and their results; empty without runs."""
    report = inspection.report
    if report is None:
        return ""
    outcomes = {
        "lost": report.lost,
        "won": report.won,
        "survived": report.survived,
        "errored": report.errored,
    }
    shares = ", ".join(f"{count / report.runs:.1%} {name}" for name, count in outcomes.items() if count)
    return f"{report.runs:,} runs of at most {report.horizon} turns, {report.persona} persona: {shares}"


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


def render_mermaid(inspection: Inspection) -> str:
    """Render the flowchart; equal inspections result in equal text."""
    graph = inspection.graph
    names = {node.node_id: f"n{index}" for index, node in enumerate(graph.nodes)}
    lines = [
        "flowchart LR",
        *_mermaid_nodes(inspection, names),
        *_mermaid_edges(graph, names),
        *_mermaid_classes(inspection, names),
    ]
    return "\n".join([*lines, ""])


def _mermaid_nodes(inspection: Inspection, names: Mapping[str, str]) -> Iterator[str]:
    sides = assign_columns(inspection.graph)
    for index, section in enumerate((*sides.left, *sides.middle, *sides.right)):
        yield f'  subgraph s{index}["{_escape(section.heading)}"]'
        for block in section.blocks:
            for node, _ in block.nodes:
                yield f"    {names[node.node_id]}{_mermaid_shape(node, describe_activity(node, inspection))}"
        yield "  end"


def _mermaid_shape(node: GraphNode, heat: str) -> str:
    before, after = _SHAPES[node.kind]
    figures = f"<br/>{_escape(heat)}" if heat else ""
    return f'{before}"{_escape(node.label)}{figures}"{after}'


def _mermaid_edges(graph: RuleGraph, names: Mapping[str, str]) -> Iterator[str]:
    endings = {node.node_id for node in graph.nodes if node.kind in _ENDINGS}
    found = bundle_edges(graph)
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


def _mermaid_classes(inspection: Inspection, names: Mapping[str, str]) -> Iterator[str]:
    if inspection.report is None:
        return
    levels = activity_levels(inspection)
    for level in range(LEVELS + 1):
        alike = [names[node_id] for node_id, found in levels.items() if found == level]
        if alike:
            look = f"fill:{_HEAT[level - 1]},color:#1b1f24" if level else "stroke-dasharray:4 3"
            yield f"  classDef h{level} {look}"
            yield f"  class {','.join(alike)} h{level}"


def _escape(text: str) -> str:
    """Escape all markup in a text, and reduce its white space to single spaces."""
    one_line = " ".join(text.split())
    return "".join(f"#{ord(mark)};" if mark in _MARKUP else mark for mark in one_line)
