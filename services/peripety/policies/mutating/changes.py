"""Changes of one part of a rule, or of the rules: what mutants are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.policies.places import Place

__all__ = ["ALWAYS", "GONE", "Change", "Mutation", "changed", "variant"]

GONE: Final = object()
"""What stands in the place of a part that is taken away."""

ALWAYS: Final[Mapping[str, Any]] = {"logic": {}}
"""The condition that always holds."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one part of a rule.

    Attributes:
        place: where it is, from the rule on.
        before: the part before.
        after: the part after, or `GONE`.
    """

    place: Place
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mutant before it is run.

    Attributes:
        mutant_id: names it within the document and the version of the operators.
        operator: stable lower_snake_case name of the operator.
        place: the changed part, from the document on.
        before: the part before; `GONE` when it was added.
        after: the part after; `GONE` when it was removed.
        rules: what stands in place of rules, by their index in `Policy.rules`; None takes one away.
    """

    mutant_id: str
    operator: str
    place: Place
    before: Any
    after: Any
    rules: Mapping[int, Mapping[str, Any] | None]


def changed(part: Any, place: Place, after: Any) -> Any:
    """A copy of a part with another value at a place, or with none, which shares all that is the same."""
    first, *rest = place
    inner = changed(part[first], tuple(rest), after) if rest else after
    if isinstance(first, int):
        kept = [] if inner is GONE else [inner]
        return [*part[:first], *kept, *part[first + 1 :]]
    others = {key: value for key, value in part.items() if key != first}
    return others if inner is GONE else others | {first: inner}


def variant(rules: Sequence[Mapping[str, Any]], mutation: Mutation) -> list[Mapping[str, Any]]:
    """All rules of a mutant; the unchanged ones are the same objects."""
    replaced = (mutation.rules.get(index, rule) for index, rule in enumerate(rules))
    return [rule for rule in replaced if rule is not None]
