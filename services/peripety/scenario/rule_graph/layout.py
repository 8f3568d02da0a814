"""Graph layout: the order of blocks within three columns, and positions of boxes and ports.

Crossing reduction is a barycenter heuristic: each block moves to the mean position of its neighbours,
column by column, and the best of several sweeps is used. Then adjacent blocks are exchanged while that
reduces crossings.

The highest column determines the height. In the others each block moves as close to the centre of its
neighbours as order and height allow, so that edges are short and level.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from peripety.scenario.rule_graph.graph import NodeKind
from peripety.scenario.rule_graph.shapes import (
    PADDING,
    Box,
    Columns,
    ColumnSection,
    neighbors_by_side,
    set_ports,
    wrap_label,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.scenario.rule_graph.graph import GraphNode
    from peripety.scenario.rule_graph.shapes import EdgeBundle, NodeBlock, Side


_SWEEPS = 8
_EXCHANGES = 8

_Sections = tuple[ColumnSection, ...]
_Neighbours = dict[str, list[str]]


def reduce_crossings(columns: Columns, links: Sequence[EdgeBundle]) -> Columns:
    """Return the columns with each section ordered for few crossings."""
    neighbours = _find_neighbors(columns, links)
    best = columns
    fewest = _count_all_crossings(columns, neighbours)
    for _ in range(_SWEEPS):
        columns = _sweep(columns, neighbours)
        crossing = _count_all_crossings(columns, neighbours)
        if crossing < fewest:
            best, fewest = columns, crossing
    for _ in range(_EXCHANGES):
        exchanged = _exchange_blocks(best, neighbours)
        if exchanged == best:
            break
        best = exchanged
    return best


def count_crossings(columns: Columns, links: Sequence[EdgeBundle]) -> int:
    """Return the number of edge crossings between the columns."""
    return _count_all_crossings(columns, _find_neighbors(columns, links))


def _find_neighbors(columns: Columns, links: Iterable[EdgeBundle]) -> _Neighbours:
    """Return the neighbours of each block."""
    block_of = {
        node.node_id: block.key
        for section in (*columns.left, *columns.middle, *columns.right)
        for block in section.blocks
        for node, _ in block.nodes
    }
    found: _Neighbours = {key: [] for key in block_of.values()}
    for link in links:
        rule, quantity = block_of[link.rule], block_of[link.quantity]
        found[rule].append(quantity)
        found[quantity].append(rule)
    return found


def _iter_blocks(sections: _Sections) -> list[NodeBlock]:
    return [block for section in sections for block in section.blocks]


def _rank_blocks(sections: _Sections) -> dict[str, int]:
    return {block.key: rank for rank, block in enumerate(_iter_blocks(sections))}


def _count_all_crossings(columns: Columns, neighbours: _Neighbours) -> int:
    middle = _rank_blocks(columns.middle)
    return sum(_count_side_crossings(side, middle, neighbours) for side in (columns.left, columns.right))


def _count_side_crossings(side: _Sections, ranks: Mapping[str, int], neighbours: _Neighbours) -> int:
    """Count crossings: an edge crosses all that start above it and end below it."""
    ends: list[int] = []
    crossing = 0
    for block in _iter_blocks(side):
        own = sorted(ranks[other] for other in neighbours[block.key])
        crossing += sum(len(ends) - bisect_left(ends, end + 1) for end in own)
        for end in own:
            insort(ends, end)
    return crossing


def _sweep(columns: Columns, neighbours: _Neighbours) -> Columns:
    sides = {**_relative_positions(columns.left), **_relative_positions(columns.right)}
    middle = _sort_sections(columns.middle, sides, neighbours)
    places = _relative_positions(middle)
    return Columns(
        _sort_sections(columns.left, places, neighbours),
        middle,
        _sort_sections(columns.right, places, neighbours),
    )


def _relative_positions(sections: _Sections) -> dict[str, float]:
    """Return the relative position of each block in its column, 0 to 1."""
    ranks = _rank_blocks(sections)
    return {key: (rank + 0.5) / len(ranks) for key, rank in ranks.items()}


def _sort_sections(sections: _Sections, places: Mapping[str, float], neighbours: _Neighbours) -> _Sections:
    own = _relative_positions(sections)

    def wanted(block: NodeBlock) -> float:
        others = neighbours[block.key]
        return fmean(places[other] for other in others) if others else own[block.key]

    return tuple(replace(section, blocks=tuple(sorted(section.blocks, key=wanted))) for section in sections)


def _exchange_blocks(columns: Columns, neighbours: _Neighbours) -> Columns:
    sides = (_rank_blocks(columns.left), _rank_blocks(columns.right))
    middle = _exchange_in_sections(columns.middle, sides, neighbours)
    ranks = (_rank_blocks(middle),)
    return Columns(
        _exchange_in_sections(columns.left, ranks, neighbours),
        middle,
        _exchange_in_sections(columns.right, ranks, neighbours),
    )


def _exchange_in_sections(
    sections: _Sections,
    sides: Sequence[Mapping[str, int]],
    neighbours: _Neighbours,
) -> _Sections:
    """Return sections with adjacent blocks exchanged where that reduces crossings; one pass."""
    ends = {
        block.key: [sorted(side[other] for other in neighbours[block.key] if other in side) for side in sides]
        for block in _iter_blocks(sections)
    }
    return tuple(replace(section, blocks=_exchange_if_better(section.blocks, ends)) for section in sections)


def _exchange_if_better(
    blocks: Sequence[NodeBlock],
    ends: Mapping[str, list[list[int]]],
) -> tuple[NodeBlock, ...]:
    order = list(blocks)
    for at in range(len(order) - 1):
        upper, lower = ends[order[at].key], ends[order[at + 1].key]
        if _count_pair_crossings(upper, lower) > _count_pair_crossings(lower, upper):
            order[at], order[at + 1] = order[at + 1], order[at]
    return tuple(order)


def _count_pair_crossings(upper: list[list[int]], lower: list[list[int]]) -> int:
    """Count the crossings of the edges of two blocks, one above the other."""
    return sum(bisect_left(below, end) for above, below in zip(upper, lower, strict=True) for end in above)


MARGIN = 24.0
BOX_WIDTH = 216.0
INDENT = 20.0
LINE_HEIGHT = 17.0
_CELL, _NOTE_CELL = 7.4, 6.6
_MAX_LINES = 2
_HEADING = 30.0
_BETWEEN_BLOCKS = 14.0
_BETWEEN_SECTIONS = 20.0
_WITHIN_BLOCK = 6.0
_MIN_GAP, _MAX_GAP = 170.0, 300.0
_PORT, _SIGNED_PORT = 9.0, 16.0
_MAX_SLACK = 40.0
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class SectionHeading:
    """Heading of a section: its text, and the start of its line."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Positions of all elements; the top is 0."""

    boxes: dict[str, Box]
    headings: list[SectionHeading]
    width: float
    height: float


def layout_nodes(
    columns: Columns,
    bundles: Sequence[EdgeBundle],
    notes: Mapping[str, Sequence[str]],
) -> GraphLayout:
    """Compute the layout.

    Args:
        columns: the nodes, in order.
        bundles: the edge bundles.
        notes: the lines below the label of each node, by its id.
    """
    gap = min(_MAX_GAP, _MIN_GAP + 3 * len(bundles))
    lefts = [MARGIN + index * (BOX_WIDTH + gap) for index in range(3)]
    ends = neighbors_by_side(columns, bundles)
    stacks = [
        _ColumnStack(sections, left, ends, notes, mirrored=sections is columns.right)
        for sections, left in zip((columns.left, columns.middle, columns.right), lefts, strict=True)
    ]
    height = max(stack.height for stack in stacks)
    for stack in stacks:
        stack.spread(height)
        stack.center(height)
    boxes = {name: box for stack in stacks for name, box in stack.boxes.items()}
    linked: dict[str, list[Box]] = {}
    for (name, _), others in ends.items():
        linked.setdefault(name, []).extend(boxes[other] for other in others)
    left, middle, right = stacks
    for _ in range(_ROUNDS):
        for stack in (middle, left, right):
            stack.move_toward(linked, height)
    set_ports(boxes, ends)
    headings = [heading for stack in stacks for heading in stack.headings()]
    return GraphLayout(boxes, headings, lefts[-1] + BOX_WIDTH + MARGIN, height)


class _ColumnStack:
    """Column of blocks that move vertically in a fixed order.

    Attributes:
        height: the minimum height.
        boxes: all boxes in it.
    """

    def __init__(
        self,
        sections: Sequence[ColumnSection],
        left: float,
        ends: Mapping[Side, Sequence[str]],
        notes: Mapping[str, Sequence[str]],
        *,
        mirrored: bool,
    ) -> None:
        self._left = left
        self.boxes: dict[str, Box] = {}
        self._blocks: list[list[Box]] = []
        self._headings: list[str] = []
        self._before: list[float] = []
        for section in sections:
            for index, block in enumerate(section.blocks):
                boxes = [
                    _build_box(node, left, depth, ends, notes[node.node_id], mirrored=mirrored)
                    for node, depth in block.nodes
                ]
                self.boxes.update((box.node.node_id, box) for box in boxes)
                self._before.append(self._space_before(index))
                self._blocks.append(boxes)
                self._headings.append("" if index else section.heading)
        self._heights = [_total_height(boxes) for boxes in self._blocks]
        self.height = sum(self._before) + sum(self._heights)

    def _space_before(self, index: int) -> float:
        if index:
            return _BETWEEN_BLOCKS
        return _HEADING + (_BETWEEN_SECTIONS if self._blocks else 0.0)

    def spread(self, height: float) -> None:
        """Use excess height for more space between the blocks."""
        more = min(_MAX_SLACK, (height - self.height) / 2 / len(self._blocks)) if self._blocks else 0.0
        self._before = [before + more for before in self._before]
        self.height += more * len(self._blocks)

    def center(self, height: float) -> None:
        """Pack the blocks without gaps, in the middle of a height."""
        self._move([(height - self.height) / 2] * len(self._blocks))

    def move_toward(self, linked: Mapping[str, Sequence[Box]], height: float) -> None:
        """Move the blocks as close to their neighbours as order and height allow."""
        wanted = []
        for boxes, packed in zip(self._blocks, self._packed_positions(), strict=True):
            others = [other.middle for box in boxes for other in linked.get(box.node.node_id, ())]
            middle = fmean(others) if others else fmean(box.middle for box in boxes)
            wanted.append(middle - _total_height(boxes) / 2 - packed)
        self._move([min(max(shift, 0.0), height - self.height) for shift in _isotonic_fit(wanted)])

    def headings(self) -> list[SectionHeading]:
        """Return the headings of its sections."""
        return [
            SectionHeading(text, self._left, boxes[0].y - 12)
            for text, boxes in zip(self._headings, self._blocks, strict=True)
            if text
        ]

    def _packed_positions(self) -> list[float]:
        """Return the top positions of the blocks with minimum spacing."""
        tops, at = [], 0.0
        for before, height in zip(self._before, self._heights, strict=True):
            tops.append(at + before)
            at += before + height
        return tops

    def _move(self, shifts: Sequence[float]) -> None:
        for boxes, packed, shift in zip(self._blocks, self._packed_positions(), shifts, strict=True):
            at = packed + shift
            for box in boxes:
                box.y = at
                at += box.height + _WITHIN_BLOCK


def _build_box(
    node: GraphNode,
    left: float,
    depth: int,
    ends: Mapping[Side, Sequence[str]],
    notes: Sequence[str],
    *,
    mirrored: bool,
) -> Box:
    """Return the box of a node; a scheduled effect is indented at the edge without ports."""
    width = BOX_WIDTH - INDENT * depth
    room = width - 2 * PADDING
    label = wrap_label(node.label, int(room / _CELL), _MAX_LINES)
    below = [line for note in notes for line in wrap_label(note, int(room / _NOTE_CELL), _MAX_LINES)]
    port = _SIGNED_PORT if node.kind is NodeKind.QUANTITY else _PORT
    text = LINE_HEIGHT * (len(label) + len(below))
    ports = max(len(ends.get((node.node_id, is_left), ())) for is_left in (True, False))
    height = max(2 * PADDING + text, port * ports + PADDING)
    return Box(node, label, below, left if mirrored else left + INDENT * depth, width, height)


def _total_height(boxes: Sequence[Box]) -> float:
    return sum(box.height for box in boxes) + _WITHIN_BLOCK * (len(boxes) - 1)


def _isotonic_fit(wanted: Sequence[float]) -> list[float]:
    """Return the closest non-decreasing sequence, by least squares (isotonic regression)."""
    pools: list[tuple[float, int]] = []
    for value in wanted:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, others = pools.pop()
            total, count = total + before, count + others
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
