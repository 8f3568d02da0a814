"""Crossing reduction: the order of blocks within columns.

Barycenter heuristic: each block moves to the mean position of its neighbours, column by column, and the best
of several sweeps is used. Then adjacent blocks are exchanged while that reduces crossings.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.drawing.columns import Columns, Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.scenarios.inspecting.drawing.columns import Block
    from peripety.scenarios.inspecting.drawing.links import Link

__all__ = ["crossings", "ordered"]

_SWEEPS = 8
_EXCHANGES = 8

_Sections = tuple[Section, ...]
_Neighbours = dict[str, list[str]]


def ordered(columns: Columns, links: Sequence[Link]) -> Columns:
    """Return the columns with each section ordered for few crossings."""
    neighbours = _neighbours(columns, links)
    best = columns
    fewest = _crossings(columns, neighbours)
    for _ in range(_SWEEPS):
        columns = _swept(columns, neighbours)
        crossing = _crossings(columns, neighbours)
        if crossing < fewest:
            best, fewest = columns, crossing
    for _ in range(_EXCHANGES):
        exchanged = _exchanged(best, neighbours)
        if exchanged == best:
            break
        best = exchanged
    return best


def crossings(columns: Columns, links: Sequence[Link]) -> int:
    """Return the number of edge crossings between the columns."""
    return _crossings(columns, _neighbours(columns, links))


def _neighbours(columns: Columns, links: Iterable[Link]) -> _Neighbours:
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


def _blocks(sections: _Sections) -> list[Block]:
    return [block for section in sections for block in section.blocks]


def _ranks(sections: _Sections) -> dict[str, int]:
    return {block.key: rank for rank, block in enumerate(_blocks(sections))}


def _crossings(columns: Columns, neighbours: _Neighbours) -> int:
    middle = _ranks(columns.middle)
    return sum(_crossings_of(side, middle, neighbours) for side in (columns.left, columns.right))


def _crossings_of(side: _Sections, ranks: Mapping[str, int], neighbours: _Neighbours) -> int:
    """Count crossings: an edge crosses all that start above it and end below it."""
    ends: list[int] = []
    crossing = 0
    for block in _blocks(side):
        own = sorted(ranks[other] for other in neighbours[block.key])
        crossing += sum(len(ends) - bisect_left(ends, end + 1) for end in own)
        for end in own:
            insort(ends, end)
    return crossing


def _swept(columns: Columns, neighbours: _Neighbours) -> Columns:
    sides = {**_places(columns.left), **_places(columns.right)}
    middle = _sorted(columns.middle, sides, neighbours)
    places = _places(middle)
    return Columns(
        _sorted(columns.left, places, neighbours), middle, _sorted(columns.right, places, neighbours)
    )


def _places(sections: _Sections) -> dict[str, float]:
    """Return the relative position of each block in its column, 0 to 1."""
    ranks = _ranks(sections)
    return {key: (rank + 0.5) / len(ranks) for key, rank in ranks.items()}


def _sorted(sections: _Sections, places: Mapping[str, float], neighbours: _Neighbours) -> _Sections:
    own = _places(sections)

    def wanted(block: Block) -> float:
        others = neighbours[block.key]
        return fmean(places[other] for other in others) if others else own[block.key]

    return tuple(replace(section, blocks=tuple(sorted(section.blocks, key=wanted))) for section in sections)


def _exchanged(columns: Columns, neighbours: _Neighbours) -> Columns:
    sides = (_ranks(columns.left), _ranks(columns.right))
    middle = _with_exchanges(columns.middle, sides, neighbours)
    ranks = (_ranks(middle),)
    return Columns(
        _with_exchanges(columns.left, ranks, neighbours),
        middle,
        _with_exchanges(columns.right, ranks, neighbours),
    )


def _with_exchanges(
    sections: _Sections, sides: Sequence[Mapping[str, int]], neighbours: _Neighbours
) -> _Sections:
    """Return sections with adjacent blocks exchanged where that reduces crossings; one pass."""
    ends = {
        block.key: [sorted(side[other] for other in neighbours[block.key] if other in side) for side in sides]
        for block in _blocks(sections)
    }
    return tuple(replace(section, blocks=_paying(section.blocks, ends)) for section in sections)


def _paying(blocks: Sequence[Block], ends: Mapping[str, list[list[int]]]) -> tuple[Block, ...]:
    order = list(blocks)
    for at in range(len(order) - 1):
        upper, lower = ends[order[at].key], ends[order[at + 1].key]
        if _crossed(upper, lower) > _crossed(lower, upper):
            order[at], order[at + 1] = order[at + 1], order[at]
    return tuple(order)


def _crossed(upper: list[list[int]], lower: list[list[int]]) -> int:
    """Count the crossings of the edges of two blocks, one above the other."""
    return sum(bisect_left(below, end) for above, below in zip(upper, lower, strict=True) for end in above)
