"""Edge bundles: all edges between a rule and a quantity as one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.scenarios.inspecting.model import EdgeKind

if TYPE_CHECKING:
    from peripety.scenarios.inspecting.model import Graph

__all__ = ["Link", "links"]


@dataclass(frozen=True, slots=True)
class Link:
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


def links(graph: Graph) -> tuple[Link, ...]:
    """Return all edge bundles, in the order of their first edges."""
    found: dict[tuple[str, str], set[EdgeKind]] = {}
    for edge in graph.edges:
        if edge.kind is not EdgeKind.SCHEDULES:
            found.setdefault((edge.source, edge.target), set()).add(edge.kind)
    return tuple(
        Link(rule, quantity, EdgeKind.READS in kinds, _effect(kinds - {EdgeKind.READS}))
        for (rule, quantity), kinds in found.items()
    )


def _effect(kinds: set[EdgeKind]) -> EdgeKind | None:
    """Combine several effects on the same quantity."""
    if len(kinds) > 1:
        return EdgeKind.WRITES
    return next(iter(kinds), None)
