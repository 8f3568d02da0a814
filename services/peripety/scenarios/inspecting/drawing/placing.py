"""Graph layout: positions of boxes in three columns, and of ports along their sides.

The highest column determines the height. In the others each block moves as close to the centre of its
neighbours as order and height allow, so that edges are short and level.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.drawing.boxes import PADDING, Box, set_ports, sides
from peripety.scenarios.inspecting.drawing.labels import wrapped
from peripety.scenarios.inspecting.model import NodeKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.scenarios.inspecting.drawing.boxes import Side
    from peripety.scenarios.inspecting.drawing.columns import Columns, Section
    from peripety.scenarios.inspecting.drawing.links import Link
    from peripety.scenarios.inspecting.model import Node

__all__ = ["BOX_WIDTH", "INDENT", "LINE_HEIGHT", "MARGIN", "Heading", "Places", "placed"]

MARGIN = 24.0
BOX_WIDTH = 216.0
INDENT = 20.0
LINE_HEIGHT = 17.0
_CELL, _NOTE_CELL = 7.4, 6.6
_MOST_LINES = 2
_HEADING = 30.0
_BETWEEN_BLOCKS = 14.0
_BETWEEN_SECTIONS = 20.0
_WITHIN_BLOCK = 6.0
_LEAST_GAP, _MOST_GAP = 170.0, 300.0
_PORT, _SIGNED_PORT = 9.0, 16.0
_MOST_SLACK = 40.0
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading of a section: its text, and the start of its line."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of all elements; the top is 0."""

    boxes: dict[str, Box]
    headings: list[Heading]
    width: float
    height: float


def placed(columns: Columns, links: Sequence[Link], notes: Mapping[str, Sequence[str]]) -> Places:
    """Compute the layout.

    Args:
        columns: the nodes, in order.
        links: the edge bundles.
        notes: the lines below the label of each node, by its id.
    """
    gap = min(_MOST_GAP, _LEAST_GAP + 3 * len(links))
    lefts = [MARGIN + index * (BOX_WIDTH + gap) for index in range(3)]
    ends = sides(columns, links)
    stacks = [
        _Stack(sections, left, ends, notes, mirrored=sections is columns.right)
        for sections, left in zip((columns.left, columns.middle, columns.right), lefts, strict=True)
    ]
    height = max(stack.height for stack in stacks)
    for stack in stacks:
        stack.loosen(height)
        stack.center(height)
    boxes = {name: box for stack in stacks for name, box in stack.boxes.items()}
    linked: dict[str, list[Box]] = {}
    for (name, _), others in ends.items():
        linked.setdefault(name, []).extend(boxes[other] for other in others)
    left, middle, right = stacks
    for _ in range(_ROUNDS):
        for stack in (middle, left, right):
            stack.approach(linked, height)
    set_ports(boxes, ends)
    headings = [heading for stack in stacks for heading in stack.headings()]
    return Places(boxes, headings, lefts[-1] + BOX_WIDTH + MARGIN, height)


class _Stack:
    """Column of blocks that move vertically in a fixed order.

    Attributes:
        height: the minimum height.
        boxes: all boxes in it.
    """

    def __init__(
        self,
        sections: Sequence[Section],
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
                    _box(node, left, depth, ends, notes[node.node_id], mirrored=mirrored)
                    for node, depth in block.nodes
                ]
                self.boxes.update((box.node.node_id, box) for box in boxes)
                self._before.append(self._space_before(index))
                self._blocks.append(boxes)
                self._headings.append("" if index else section.heading)
        self._heights = [_height(boxes) for boxes in self._blocks]
        self.height = sum(self._before) + sum(self._heights)

    def _space_before(self, index: int) -> float:
        if index:
            return _BETWEEN_BLOCKS
        return _HEADING + (_BETWEEN_SECTIONS if self._blocks else 0.0)

    def loosen(self, height: float) -> None:
        """Use excess height for more space between the blocks."""
        more = min(_MOST_SLACK, (height - self.height) / 2 / len(self._blocks)) if self._blocks else 0.0
        self._before = [before + more for before in self._before]
        self.height += more * len(self._blocks)

    def center(self, height: float) -> None:
        """Pack the blocks without gaps, in the middle of a height."""
        self._move([(height - self.height) / 2] * len(self._blocks))

    def approach(self, linked: Mapping[str, Sequence[Box]], height: float) -> None:
        """Move the blocks as close to their neighbours as order and height allow."""
        wanted = []
        for boxes, packed in zip(self._blocks, self._packed(), strict=True):
            others = [other.middle for box in boxes for other in linked.get(box.node.node_id, ())]
            middle = fmean(others) if others else fmean(box.middle for box in boxes)
            wanted.append(middle - _height(boxes) / 2 - packed)
        self._move([min(max(shift, 0.0), height - self.height) for shift in _rising(wanted)])

    def headings(self) -> list[Heading]:
        """Return the headings of its sections."""
        return [
            Heading(text, self._left, boxes[0].y - 12)
            for text, boxes in zip(self._headings, self._blocks, strict=True)
            if text
        ]

    def _packed(self) -> list[float]:
        """Return the top positions of the blocks with minimum spacing."""
        tops, at = [], 0.0
        for before, height in zip(self._before, self._heights, strict=True):
            tops.append(at + before)
            at += before + height
        return tops

    def _move(self, shifts: Sequence[float]) -> None:
        for boxes, packed, shift in zip(self._blocks, self._packed(), shifts, strict=True):
            at = packed + shift
            for box in boxes:
                box.y = at
                at += box.height + _WITHIN_BLOCK


def _box(
    node: Node,
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
    label = wrapped(node.label, int(room / _CELL), _MOST_LINES)
    below = [line for note in notes for line in wrapped(note, int(room / _NOTE_CELL), _MOST_LINES)]
    port = _SIGNED_PORT if node.kind is NodeKind.QUANTITY else _PORT
    text = LINE_HEIGHT * (len(label) + len(below))
    ports = max(len(ends.get((node.node_id, is_left), ())) for is_left in (True, False))
    height = max(2 * PADDING + text, port * ports + PADDING)
    return Box(node, label, below, left if mirrored else left + INDENT * depth, width, height)


def _height(boxes: Sequence[Box]) -> float:
    return sum(box.height for box in boxes) + _WITHIN_BLOCK * (len(boxes) - 1)


def _rising(wanted: Sequence[float]) -> list[float]:
    """Return the closest non-decreasing sequence, by least squares (isotonic regression)."""
    pools: list[tuple[float, int]] = []
    for value in wanted:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, others = pools.pop()
            total, count = total + before, count + others
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
