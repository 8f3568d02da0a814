"""Mutants of a policy as changes of its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from peripety.policies.analysis.comparing import Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.mutations.changes import Place

__all__ = ["ALWAYS", "Mutation", "variant", "window"]

ALWAYS: Final[Mapping[str, Any]] = {"logic": {}}
"""The condition that always holds."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mutant of a policy.

    Attributes:
        mutant_id: unique within the document and the version of the operators.
        operator: stable lower_snake_case name of the operator.
        place: path of the changed part in the document.
        before: the part before; `GONE` if it was added.
        after: the part after; `GONE` if it was removed.
        rules: replaced rules by their index in `Policy.rules`; None removes a rule.
    """

    mutant_id: str
    operator: str
    place: Place
    before: Any
    after: Any
    rules: Mapping[int, Mapping[str, Any] | None]


def window(rules: Sequence[Mapping[str, Any]], mutation: Mutation) -> Window:
    """Return the window of rules that a mutant replaces; unchanged rules are the same objects."""
    first, behind = min(mutation.rules), max(mutation.rules) + 1
    replaced = (mutation.rules.get(index, rules[index]) for index in range(first, behind))
    return Window(first, behind, [rule for rule in replaced if rule is not None])


def variant(rules: Sequence[Mapping[str, Any]], mutation: Mutation) -> list[Mapping[str, Any]]:
    """Return all rules of a mutant; unchanged rules are the same objects."""
    replaced = (mutation.rules.get(index, rule) for index, rule in enumerate(rules))
    return [rule for rule in replaced if rule is not None]
