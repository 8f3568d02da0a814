"""Three columns of a graph drawing: actions, quantities, and events with endings.

Rules are on both sides of the quantities, so that no edge passes behind another node, and fewer edges cross
than with all rules on one side. A scheduled effect is below its rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.model import EdgeKind, NodeKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.scenarios.inspecting.model import Graph, Node

__all__ = ["Block", "Columns", "Section", "columns"]

_LEFT = {NodeKind.ACTION: "What can be done"}
_MIDDLE = {NodeKind.QUANTITY: "What there is"}
_RIGHT = {
    NodeKind.EVENT: "What may happen",
    NodeKind.DECAY: "What goes by itself",
    NodeKind.LOSS: "Lost when",
    NodeKind.WIN: "Won when",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Node with all its scheduled effects, each with its depth; the layout moves them together."""

    nodes: tuple[tuple[Node, int], ...]

    @property
    def key(self) -> str:
        """Return the id of the first node."""
        return self.nodes[0][0].node_id


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks of one kind, under a heading."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """All blocks, by column."""

    left: tuple[Section, ...]
    middle: tuple[Section, ...]
    right: tuple[Section, ...]


def columns(graph: Graph) -> Columns:
    """Assign the nodes of a graph to columns, in specification order; empty sections are omitted."""
    scheduled: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            scheduled.setdefault(edge.source, []).append(edge.target)
    nodes = {node.node_id: node for node in graph.nodes}

    def block(node: Node, depth: int = 0) -> Iterator[tuple[Node, int]]:
        yield node, depth
        for later in scheduled.get(node.node_id, []):
            yield from block(nodes[later], depth + 1)

    def sections(headings: Mapping[NodeKind, str]) -> tuple[Section, ...]:
        made = (
            Section(heading, tuple(Block(tuple(block(node))) for node in graph.nodes if node.kind is kind))
            for kind, heading in headings.items()
        )
        return tuple(section for section in made if section.blocks)

    return Columns(sections(_LEFT), sections(_MIDDLE), sections(_RIGHT))
