"""Rule graph as text."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.heat import told_heat
from peripety.scenarios.inspecting.model import EdgeKind

if TYPE_CHECKING:
    from peripety.scenarios.inspecting.model import Graph, Inspection

__all__ = ["VERBS", "told_doings", "told_nodes", "told_runs"]

_PASSIVE = {
    EdgeKind.READS: "read by",
    EdgeKind.RAISES: "raised by",
    EdgeKind.LOWERS: "lowered by",
    EdgeKind.WRITES: "changed by",
    EdgeKind.SCHEDULES: "scheduled by",
}
VERBS = {**{kind: kind.value for kind in EdgeKind}, EdgeKind.WRITES: "changes"}
"""The verb for each kind of edge."""


def told_doings(graph: Graph) -> dict[str, str]:
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


def told_nodes(inspection: Inspection) -> dict[str, str]:
    """Describe each node in one line, by its id."""
    doings = told_doings(inspection.graph)
    told = {}
    for node in inspection.graph.nodes:
        parts = (
            doings[node.node_id] or "touches nothing",
            f"when {node.condition}" if node.condition else "",
            told_heat(node, inspection),
        )
        told[node.node_id] = f"{node.kind.value} {node.label}: {'; '.join(filter(None, parts))}"
    return told


def told_runs(inspection: Inspection) -> str:
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
