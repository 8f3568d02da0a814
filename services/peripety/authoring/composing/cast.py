"""Which of the words of a text plays which part."""

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
"""The parts there are to play, the ones no scenario goes without first."""

FEWEST, MOST = 4, len(_PARTS)
"""How many terms are needed, and how many have a part."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The terms that play each part; each has one at least."""

    supplies: tuple[Term, ...]
    wards: tuple[Term, ...]
    threats: tuple[Term, ...]
    goals: tuple[Term, ...]


def cast(terms: Sequence[Term], number: Callable[[str, int], int]) -> Cast:
    """Parts for terms: what the text hints at where it does, else by lot.

    Args:
        terms: at least `FEWEST`, the weightiest first.
        number: a number for a tag, below a bound.
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
