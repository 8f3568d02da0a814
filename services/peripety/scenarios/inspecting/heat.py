"""Heat: how often each node of a rule graph was at work in runs that were played.

Actions count when they are taken, events when they are drawn (at their onset), endings when they end a run,
decay in every turn. Effects that are scheduled count when they are scheduled, since a run may be over before
they are due. A quantity counts as often as the rules that write it do.
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
"""How many degrees of heat are told apart, besides none at all."""

_ENDINGS = frozenset({NodeKind.LOSS, NodeKind.WIN})
_WRITING = frozenset({EdgeKind.RAISES, EdgeKind.LOWERS, EdgeKind.WRITES})


def measured_heat(graph: Graph, report: DryRunReport, detail: RunDetail) -> dict[str, int]:
    """How often each node was at work, by its id.

    Args:
        graph: the rules.
        report: what came of runs.
        detail: what else was counted of the same runs.
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
    # The edges of a rule stand before those of what it schedules.
    for edge in graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            heat[edge.target] = heat[edge.source]
    writing = {(edge.source, edge.target) for edge in graph.edges if edge.kind in _WRITING}
    for rule, quantity in writing:
        heat[quantity] += heat[rule]
    return heat


def heat_levels(inspection: Inspection) -> dict[str, int]:
    """The degree of heat of each node among those that are counted alike: 0 for none, at most `LEVELS`."""
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
    """The heat of a node for a person, as a share of turns or runs and as a count; empty without runs."""
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
    """A share in as few digits as tell it from none."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1g} %"  # noqa: PLR2004 - a per cent


def _alike(node: Node) -> str:
    return "ending" if node.kind in _ENDINGS else node.kind.value


def _level(count: int, hottest: int) -> int:
    return math.ceil(LEVELS * count / hottest) if count else 0
