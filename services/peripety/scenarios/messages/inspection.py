"""Rule graphs as protobuf messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.scenarios.messages import parts

if TYPE_CHECKING:
    from peripety.scenarios.inspecting.model import Inspection

__all__ = ["inspection_response"]


def inspection_response(inspection: Inspection) -> pb.InspectScenarioResponse:
    """Convert a rule graph with its activity."""
    graph = inspection.graph
    nodes = [
        pb.RuleNode(
            node_id=node.node_id,
            kind=pb.RuleNodeKind.Value(f"RULE_NODE_KIND_{node.kind.name}"),
            label=node.label,
            heat=inspection.heat.get(node.node_id, 0),
        )
        for node in graph.nodes
    ]
    edges = [
        pb.RuleEdge(
            from_node_id=edge.source,
            to_node_id=edge.target,
            kind=pb.RuleEdgeKind.Value(f"RULE_EDGE_KIND_{edge.kind.name}"),
        )
        for edge in graph.edges
    ]
    report = inspection.report
    return pb.InspectScenarioResponse(
        nodes=nodes, edges=edges, dry_run=None if report is None else parts.report(report)
    )
