"""Assignment of roles to the terms of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.authoring.blueprint import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.authoring.reading.terms import Term

__all__ = ["FEWEST", "MOST", "Cast", "cast"]

_PARTS = (
    *(Role.GOAL, Role.SUPPLY, Role.THREAT, Role.WARD),
    *(Role.SUPPLY, Role.THREAT, Role.WARD, Role.GOAL),
)
"""All roles, required ones first."""

FEWEST, MOST = 4, len(_PARTS)
"""The minimum number of terms, and the number of roles."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Terms of each role; at least one per role."""

    supplies: tuple[Term, ...]
    wards: tuple[Term, ...]
    threats: tuple[Term, ...]
    goals: tuple[Term, ...]


def cast(terms: Sequence[Term], number: Callable[[str, int], int]) -> Cast:
    """Assign roles to terms: by the hints of the text where possible, else by seeded choice.

    Args:
        terms: at least `FEWEST` terms, by descending salience.
        number: seeded number for a tag, below a bound.
    """
    open_parts = list(_PARTS[: len(terms)])
    parts: dict[Role, list[Term]] = {role: [] for role in Role}
    left = []
    for term in terms[:MOST]:
        if term.part in open_parts:
            open_parts.remove(term.part)
            parts[term.part].append(term)
        else:
            left.append(term)
    turned = number("parts", len(left)) if left else 0
    for role, term in zip(open_parts, [*left[turned:], *left[:turned]], strict=True):
        parts[role].append(term)
    return Cast(*(tuple(parts[role]) for role in (Role.SUPPLY, Role.WARD, Role.THREAT, Role.GOAL)))
