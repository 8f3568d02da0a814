"""Quantities of a scenario: the terms of a text by role, plus hidden and private quantities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.authoring.blueprint import Quantity, Role, Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.authoring.composing.cast import Cast
    from peripety.authoring.reading.terms import Term

__all__ = ["Confidant", "Stage", "stage"]


@dataclass(frozen=True, slots=True)
class Confidant:
    """Named person with private quantities.

    Attributes:
        name: the name.
        reserve: a benefit that is held back until trust is won.
        doubts: a hidden threat that grows until it triggers an event.
    """

    name: str
    reserve: Quantity
    doubts: Quantity


@dataclass(frozen=True, slots=True)
class Stage:
    """Quantities of a scenario, by role.

    Attributes:
        wear: hidden damage of shortcuts, until an event releases it.
    """

    supplies: tuple[Quantity, ...]
    wards: tuple[Quantity, ...]
    threats: tuple[Quantity, ...]
    goals: tuple[Quantity, ...]
    wear: Quantity
    confidants: tuple[Confidant, ...]

    def quantities(self) -> tuple[Quantity, ...]:
        """Return all quantities."""
        kept = (part for one in self.confidants for part in (one.reserve, one.doubts))
        return (*self.supplies, *self.wards, *self.threats, *self.goals, self.wear, *kept)


def stage(cast: Cast, people: Sequence[str], phrases: Mapping[str, str]) -> Stage:
    """Return the quantities for the assigned roles."""

    def named(use: str, term: str, role: Role, **more: object) -> Quantity:
        return Quantity(phrases[use].format(a=term), role, term=term, **more)  # type: ignore[arg-type]

    def played(use: str, terms: Sequence[Term], role: Role) -> Iterator[Quantity]:
        for place, term in enumerate(terms):
            # Only one supply decays. If all did, actions would not matter.
            fades = role is Role.SUPPLY and place == 0
            yield named(use, term.text, role, fades=fades, amount=term.counted)

    supplies = tuple(played("stock", cast.supplies, Role.SUPPLY))
    wards = tuple(played("ward", cast.wards, Role.WARD))
    confidants = tuple(
        Confidant(
            person,
            named(
                "reserve", supplies[place % len(supplies)].term, Role.SUPPLY, start=Size.SMALL, holder=person
            )
            if place < len(supplies)
            else named("reserve", wards[place % len(wards)].term, Role.WARD, start=Size.SMALL, holder=person),
            named("doubts", person, Role.THREAT, start=Size.SMALL, holder=person),
        )
        for place, person in enumerate(people)
    )
    return Stage(
        supplies,
        wards,
        tuple(played("threat", cast.threats, Role.THREAT)),
        tuple(played("goal", cast.goals, Role.GOAL)),
        named("wear", wards[0].term, Role.THREAT, start=Size.SMALL, is_hidden=True),
        confidants,
    )
