"""Three columns: what can be done, what there is, and what happens and how it ends.

Rules stand on both sides of the quantities, so that no line passes another node, and fewer lines cross than
with all rules on one side. What a rule schedules stands below it.
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
    """A node with all that it schedules, each with how deep it is scheduled; they stay together."""

    nodes: tuple[tuple[Node, int], ...]

    @property
    def key(self) -> str:
        """The id of the first node."""
        return self.nodes[0][0].node_id


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks of a kind, under a heading."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """All blocks, by where they stand."""

    left: tuple[Section, ...]
    middle: tuple[Section, ...]
    right: tuple[Section, ...]


def columns(graph: Graph) -> Columns:
    """Where the nodes of a graph stand, in the order of the specification; no section is empty."""
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
