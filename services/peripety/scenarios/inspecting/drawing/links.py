"""Links: the edges between a rule and a quantity as one line, however many they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.model import EdgeKind

if TYPE_CHECKING:
    from peripety.scenarios.inspecting.model import Graph

__all__ = ["Link", "links"]


@dataclass(frozen=True, slots=True)
class Link:
    """What a rule has to do with a quantity.

    Attributes:
        rule: the id of its node.
        quantity: the id of its node.
        reads: whether the rule depends on the quantity.
        effect: what the rule does to it; None where it only reads.
    """

    rule: str
    quantity: str
    reads: bool
    effect: EdgeKind | None

    @property
    def kind(self) -> EdgeKind:
        """What it is drawn as."""
        return self.effect or EdgeKind.READS


def links(graph: Graph) -> tuple[Link, ...]:
    """All links, in the order of their first edges."""
    found: dict[tuple[str, str], set[EdgeKind]] = {}
    for edge in graph.edges:
        if edge.kind is not EdgeKind.SCHEDULES:
            found.setdefault((edge.source, edge.target), set()).add(edge.kind)
    return tuple(
        Link(rule, quantity, EdgeKind.READS in kinds, _effect(kinds - {EdgeKind.READS}))
        for (rule, quantity), kinds in found.items()
    )


def _effect(kinds: set[EdgeKind]) -> EdgeKind | None:
    """What several effects on the same quantity come to."""
    if len(kinds) > 1:
        return EdgeKind.WRITES
    return next(iter(kinds), None)
