"""Mutation operators of whole rules: drop, swap, or change the decision."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE, Change
from peripety.policies.places import own_rules, place_of
from peripety.sim import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.mutations.changes import Place
    from peripety.sim import Policy

__all__ = ["change_decision", "drop_rule", "swap_rules"]


def drop_rule(policy: Policy) -> Iterator[tuple[Place, Any, Any, dict[int, Any]]]:
    """Drop a rule."""
    for index, rule in own_rules(policy):
        yield place_of(policy, index), rule, GONE, {index: None}


def swap_rules(policy: Policy) -> Iterator[tuple[Place, Any, Any, dict[int, Any]]]:
    """Swap a rule with the next one, unless both make the same decision."""
    for (index, rule), (later, follower) in pairwise(own_rules(policy)):
        if rule["then"] != follower["then"]:
            yield place_of(policy, index), rule, follower, {index: follower, later: rule}


def change_decision(rule: Mapping[str, Any]) -> Iterator[Change]:
    """Change the decision of a rule."""
    for decision in Decision:
        if decision.value != rule["then"]:
            yield Change(("then",), rule["then"], decision.value)
