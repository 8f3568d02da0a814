"""Shapes of a graph drawing: boxes with ports, columns, wrapped labels and edge bundles.

The columns are actions, quantities, and events with endings. Rules are on both sides of the quantities, so
that no edge passes behind another node, and fewer edges cross than with all rules on one side. A scheduled
effect is below its rule. An edge bundle draws all edges between a rule and a quantity as one line.

Labels are wrapped without font metrics: most characters have one cell, wide ones two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from peripety.scenario.rule_graph.graph import EdgeKind, NodeKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.scenario.rule_graph.graph import GraphNode, RuleGraph


PADDING = 9.0
_MAX_PORT_DISTANCE = 32.0


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

    node: GraphNode
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


def neighbors_by_side(columns: Columns, links: Sequence[EdgeBundle]) -> dict[Side, list[str]]:
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
        step = min(_MAX_PORT_DISTANCE, (box.height - PADDING) / len(others))
        first = box.middle - step * (len(others) - 1) / 2
        for index, other in enumerate(sorted(others, key=lambda other: boxes[other].middle)):
            box.ports[other] = first + step * index


_LEFT = {NodeKind.ACTION: "What can be done"}
_MIDDLE = {NodeKind.QUANTITY: "What there is"}
_RIGHT = {
    NodeKind.EVENT: "What may happen",
    NodeKind.DECAY: "What goes by itself",
    NodeKind.LOSS: "Lost when",
    NodeKind.WIN: "Won when",
}


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """Node with all its scheduled effects, each with its depth; the layout moves them together."""

    nodes: tuple[tuple[GraphNode, int], ...]

    @property
    def key(self) -> str:
        """Return the id of the first node."""
        return self.nodes[0][0].node_id


@dataclass(frozen=True, slots=True)
class ColumnSection:
    """Blocks of one kind, under a heading."""

    heading: str
    blocks: tuple[NodeBlock, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """All blocks, by column."""

    left: tuple[ColumnSection, ...]
    middle: tuple[ColumnSection, ...]
    right: tuple[ColumnSection, ...]


def assign_columns(graph: RuleGraph) -> Columns:
    """Assign the nodes of a graph to columns, in specification order; empty sections are omitted."""
    scheduled: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            scheduled.setdefault(edge.source, []).append(edge.target)
    nodes = {node.node_id: node for node in graph.nodes}

    def block(node: GraphNode, depth: int = 0) -> Iterator[tuple[GraphNode, int]]:
        yield node, depth
        for later in scheduled.get(node.node_id, []):
            yield from block(nodes[later], depth + 1)

    def sections(headings: Mapping[NodeKind, str]) -> tuple[ColumnSection, ...]:
        made = (
            ColumnSection(
                heading,
                tuple(NodeBlock(tuple(block(node))) for node in graph.nodes if node.kind is kind),
            )
            for kind, heading in headings.items()
        )
        return tuple(section for section in made if section.blocks)

    return Columns(sections(_LEFT), sections(_MIDDLE), sections(_RIGHT))


_COMPARISONS = "=≠<≤>≥"
_BREAKS = re.compile(rf"(?<=[\s._:/\-])(?<![{_COMPARISONS}]\s)(?![{_COMPARISONS}]\s)")
"""Break points between words; a comparison is not broken before its operand."""


def count_cells(text: str) -> int:
    """Return the width of a text in cells."""
    return sum(_character_width(character) for character in text)


def wrap_label(text: str, max_cells: int, max_lines: int) -> list[str]:
    """Wrap a text into lines, between words where possible; excess text is truncated with an ellipsis.

    Args:
        text: the text.
        max_cells: the maximum width of a line.
        max_lines: the maximum number of lines.
    """
    lines = [""]
    for word in _split_words(" ".join(text.split()), max_cells):
        if count_cells((lines[-1] + word).rstrip()) <= max_cells:
            lines[-1] += word
        else:
            lines.append(word)
    told = [line.strip() for line in lines]
    if len(told) <= max_lines:
        return told
    return [*told[: max_lines - 1], _truncate(" ".join(told[max_lines - 1 :]), max_cells - 1) + "…"]


def _split_words(text: str, most_cells: int) -> list[str]:
    """Split a text into words with their separators; a word longer than a line is split, too."""
    starts = [0, *(match.start() for match in _BREAKS.finditer(text)), len(text)]
    words = []
    for start, end in pairwise(starts):
        word = text[start:end]
        while count_cells(word) > most_cells:
            piece = _truncate(word, most_cells)
            words.append(piece)
            word = word[len(piece) :]
        words.append(word)
    return words


def _truncate(text: str, most_cells: int) -> str:
    """Truncate a text to a width."""
    room = most_cells
    for index, character in enumerate(text):
        room -= _character_width(character)
        if room < 0:
            return text[:index]
    return text


def _character_width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in {"W", "F"} else 1


@dataclass(frozen=True, slots=True)
class EdgeBundle:
    """Edge bundle of a rule and a quantity.

    Attributes:
        rule: the id of the rule's node.
        quantity: the id of the quantity's node.
        reads: True if the rule reads the quantity.
        effect: the effect of the rule on it; None if it only reads.
    """

    rule: str
    quantity: str
    reads: bool
    effect: EdgeKind | None

    @property
    def kind(self) -> EdgeKind:
        """Return the kind that determines its drawing."""
        return self.effect or EdgeKind.READS


def bundle_edges(graph: RuleGraph) -> tuple[EdgeBundle, ...]:
    """Return all edge bundles, in the order of their first edges."""
    found: dict[tuple[str, str], set[EdgeKind]] = {}
    for edge in graph.edges:
        if edge.kind is not EdgeKind.SCHEDULES:
            found.setdefault((edge.source, edge.target), set()).add(edge.kind)
    return tuple(
        EdgeBundle(rule, quantity, EdgeKind.READS in kinds, _combine_effects(kinds - {EdgeKind.READS}))
        for (rule, quantity), kinds in found.items()
    )


def _combine_effects(kinds: set[EdgeKind]) -> EdgeKind | None:
    """Combine several effects on the same quantity."""
    if len(kinds) > 1:
        return EdgeKind.WRITES
    return next(iter(kinds), None)
