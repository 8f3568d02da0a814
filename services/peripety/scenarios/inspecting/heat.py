"""Activity of rule graph nodes in simulated runs.

Actions count when chosen, events when drawn (at their onset), endings when they end a run, decay in every
turn. Scheduled effects count when they are scheduled, because a run may end before they are due. A quantity
counts as often as all rules that write it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.model import EdgeKind, NodeKind

if TYPE_CHECKING:
    from peripety.scenarios.inspecting.model import Graph, Inspection, Node
    from peripety.sim import DryRunReport, RunDetail

__all__ = ["LEVELS", "heat_levels", "measured_heat", "told_heat"]

LEVELS = 5
"""The number of distinct levels of activity, besides none."""

_ENDINGS = frozenset({NodeKind.LOSS, NodeKind.WIN})
_WRITING = frozenset({EdgeKind.RAISES, EdgeKind.LOWERS, EdgeKind.WRITES})


def measured_heat(graph: Graph, report: DryRunReport, detail: RunDetail) -> dict[str, int]:
    """Return the activity of each node, by its id.

    Args:
        graph: the rule graph.
        report: the runs.
        detail: the detailed counts of the same runs.
    """
    heat: dict[str, int] = {}
    for node in graph.nodes:
        match node.kind:
            case NodeKind.ACTION:
                heat[node.node_id] = detail.actions[node.key].taken
            case NodeKind.EVENT:
                heat[node.node_id] = detail.events[node.key]
            case NodeKind.LOSS:
                heat[node.node_id] = report.losses[node.key]
            case NodeKind.WIN:
                heat[node.node_id] = report.wins[node.key]
            case NodeKind.DECAY:
                heat[node.node_id] = report.turns
            case _:
                heat[node.node_id] = 0
    # The edges of a rule precede those of its scheduled effects.
    for edge in graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            heat[edge.target] = heat[edge.source]
    writing = {(edge.source, edge.target) for edge in graph.edges if edge.kind in _WRITING}
    for rule, quantity in writing:
        heat[quantity] += heat[rule]
    return heat


def heat_levels(inspection: Inspection) -> dict[str, int]:
    """Return the level of activity of each node among those of its kind: 0 for none, at most `LEVELS`."""
    hottest: defaultdict[str, int] = defaultdict(int)
    for node in inspection.graph.nodes:
        alike = _alike(node)
        hottest[alike] = max(hottest[alike], inspection.heat.get(node.node_id, 0))
    levels = {
        node.node_id: _level(inspection.heat.get(node.node_id, 0), hottest[_alike(node)])
        for node in inspection.graph.nodes
    }
    for edge in inspection.graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            levels[edge.target] = levels[edge.source]
    return levels


def told_heat(node: Node, inspection: Inspection) -> str:
    """Describe the activity of a node, as a share of turns or runs and as a count; empty without runs."""
    report = inspection.report
    if report is None:
        return ""
    count = inspection.heat[node.node_id]
    if count == 0:
        return "never written" if node.kind is NodeKind.QUANTITY else "never"
    if node.kind is NodeKind.DECAY:
        return "every turn"
    whole, unit = (report.runs, "runs") if node.kind in _ENDINGS else (report.turns, "turns")
    share = count / whole
    told = f"{share:.1f} a turn" if share > 1 else f"{_percent(share)} of {unit}"
    return f"{told} ({count:,})"


def _percent(share: float) -> str:
    """Format a share with as few digits as distinguish it from zero."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1g} %"  # noqa: PLR2004 - a per cent


def _alike(node: Node) -> str:
    return "ending" if node.kind in _ENDINGS else node.kind.value


def _level(count: int, hottest: int) -> int:
    return math.ceil(LEVELS * count / hottest) if count else 0
