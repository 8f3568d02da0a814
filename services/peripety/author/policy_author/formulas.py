"""Formulas over the parts of a sentence: conjunction, disjunction, negation, and their disjuncts.

A leaf is a part of a sentence, a test of a call, or `APPROVAL`: that a person approves the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


APPROVAL: Final = "approval"
"""The leaf that is true for calls that a person approves. No rule can see it, so it escalates."""

MOST_DISJUNCTS: Final = 32
"""The maximum number of rules from one formula."""


@dataclass(frozen=True, slots=True)
class Junction:
    """Node of a formula.

    Attributes:
        operator: `and`, `or` or `not`.
        parts: the operands.
    """

    operator: str
    parts: tuple[Formula, ...]


Formula: TypeAlias = bool | str | Junction | Any
Disjunct: TypeAlias = tuple[tuple[Any, bool], ...]


def all_of(*parts: Formula) -> Formula:
    """Return the conjunction of formulas."""
    return _join("and", parts, neutral=True)


def any_of(*parts: Formula) -> Formula:
    """Return the disjunction of formulas."""
    return _join("or", parts, neutral=False)


def _join(operator: str, parts: tuple[Formula, ...], *, neutral: bool) -> Formula:
    kept = tuple(dict.fromkeys(part for part in parts if part is not neutral))
    if any(part is not neutral and isinstance(part, bool) for part in kept):
        return not neutral
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else Junction(operator, kept)


def negate(formula: Formula) -> Formula:
    """Return the negation of a formula, with negations at its leaves."""
    if isinstance(formula, bool):
        return not formula
    if not isinstance(formula, Junction):
        return Junction("not", (formula,))
    if formula.operator == "not":
        return formula.parts[0]
    parts = map(negate, formula.parts)
    return any_of(*parts) if formula.operator == "and" else all_of(*parts)


def replace_leaves(formula: Formula, replace: Callable[[Any], Formula]) -> Formula:
    """Return the formula with each leaf replaced."""
    if isinstance(formula, bool):
        return formula
    if not isinstance(formula, Junction):
        return replace(formula)
    parts = (replace_leaves(part, replace) for part in formula.parts)
    if formula.operator == "not":
        return negate(next(parts))
    return all_of(*parts) if formula.operator == "and" else any_of(*parts)


def has_leaf(formula: Formula, leaf: Any) -> bool:
    """Return True if a formula has a leaf."""
    if isinstance(formula, Junction):
        return any(has_leaf(part, leaf) for part in formula.parts)
    return not isinstance(formula, bool) and bool(formula == leaf)


def assume_approval(formula: Formula, *, is_given: bool) -> Formula:
    """Return the formula for calls that a person approves, or for those that no person has approved."""
    return replace_leaves(formula, lambda leaf: is_given if leaf == APPROVAL else leaf)


def to_disjuncts(formula: Formula) -> list[Disjunct]:
    """Return the alternatives of a formula, each a conjunction of leaves with their negation.

    An alternative that contradicts itself is left out.
    """
    if isinstance(formula, bool):
        return [()] if formula else []
    if not isinstance(formula, Junction):
        return [((formula, False),)]
    if formula.operator == "not":
        return [((formula.parts[0], True),)]
    below = [to_disjuncts(part) for part in formula.parts]
    if formula.operator == "or":
        found = [one for alternatives in below for one in alternatives]
    else:
        found = [tuple(dict.fromkeys(leaf for part in choice for leaf in part)) for choice in product(*below)]
    return [one for one in dict.fromkeys(found) if not _contradicts_itself(one)]


def _contradicts_itself(disjunct: Disjunct) -> bool:
    return any((leaf, not is_negated) in disjunct for leaf, is_negated in disjunct)
