"""Paths of rules in a policy document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.mutations.changes import Place
    from peripety.sim import Policy

__all__ = ["own_rules", "place_of"]


def own_rules(policy: Policy) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rules without invariants, with their indices in `Policy.rules`."""
    yield from enumerate(policy.spec["rules"], policy.invariants)


def place_of(policy: Policy, index: int) -> Place:
    """Return the path in the document of a rule or invariant, given its index in `Policy.rules`."""
    own = index - policy.invariants
    return ("invariants", index) if own < 0 else ("rules", own)
