"""Boxes of a graph drawing: nodes, and the ports at their sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.scenarios.inspecting.drawing.columns import Columns
    from peripety.scenarios.inspecting.drawing.links import Link
    from peripety.scenarios.inspecting.model import Node

__all__ = ["PADDING", "Box", "set_ports", "sides"]

PADDING = 9.0
_MOST_APART = 32.0


@dataclass(slots=True)
class Box:
    """Box of a node.

    Attributes:
        node: the node.
        lines: the lines of its label.
        notes: the lines below the label.
        x: the left edge.
        width: its width.
        height: its height.
        y: the top edge.
        ports: the ends of edges from top to bottom, by the id of the other node.
    """

    node: Node
    lines: list[str]
    notes: list[str]
    x: float
    width: float
    height: float
    y: float = 0.0
    ports: dict[str, float] = field(default_factory=dict)

    @property
    def middle(self) -> float:
        """Return the vertical centre."""
        return self.y + self.height / 2


Side = tuple[str, bool]
"""The id of a node, and True for its edges with rules of the left column."""


def sides(columns: Columns, links: Sequence[Link]) -> dict[Side, list[str]]:
    """Return the neighbours at each side with edges; a rule has one such side."""
    left = {node.node_id for section in columns.left for block in section.blocks for node, _ in block.nodes}
    found: dict[Side, list[str]] = {}
    for link in links:
        is_left = link.rule in left
        found.setdefault((link.rule, is_left), []).append(link.quantity)
        found.setdefault((link.quantity, is_left), []).append(link.rule)
    return found


def set_ports(boxes: Mapping[str, Box], ends: Mapping[Side, Sequence[str]]) -> None:
    """Distribute the ports along the sides, in the order of the neighbours."""
    for (name, _), others in ends.items():
        box = boxes[name]
        step = min(_MOST_APART, (box.height - PADDING) / len(others))
        first = box.middle - step * (len(others) - 1) / 2
        for index, other in enumerate(sorted(others, key=lambda other: boxes[other].middle)):
            box.ports[other] = first + step * index
