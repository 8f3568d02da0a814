"""Blueprint builder: the analysed terms of a text fill the roles of a fixed plot template.

Any term can fill any role:

    supplies  are spent by every action; one decays
    wards     are protected; while the first is in good shape, work has more effect
    threats   grow by chance and by neglect, and harm the wards once they are high
    goals     are worked towards; enough of each wins, too little of the first at the deadline loses
    wear      is hidden: shortcuts increase it until an event releases it
    people    hold back a reserve; their doubts grow with the threats and with costs that others bear
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.author.blueprint import Action, Blueprint, Chance, Event, Flow, Quantity, Role, Size, Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.author.text_analysis.terms import Term, TermSet

    Say = Callable[..., str]


_ROLE_ORDER = (
    *(Role.GOAL, Role.SUPPLY, Role.THREAT, Role.WARD),
    *(Role.SUPPLY, Role.THREAT, Role.WARD, Role.GOAL),
)
"""All roles, required ones first."""

MIN_TERMS, MAX_TERMS = 4, len(_ROLE_ORDER)
"""The minimum number of terms, and the number of roles."""


@dataclass(frozen=True, slots=True)
class RoleAssignment:
    """Terms of each role; at least one per role."""

    supplies: tuple[Term, ...]
    wards: tuple[Term, ...]
    threats: tuple[Term, ...]
    goals: tuple[Term, ...]


def assign_roles(terms: Sequence[Term], number: Callable[[str, int], int]) -> RoleAssignment:
    """Assign roles to terms: by the hints of the text where possible, else by seeded choice.

    Args:
        terms: at least `FEWEST` terms, by descending salience.
        number: seeded number for a tag, below a bound.
    """
    open_parts = list(_ROLE_ORDER[: len(terms)])
    parts: dict[Role, list[Term]] = {role: [] for role in Role}
    left = []
    for term in terms[:MAX_TERMS]:
        if term.part in open_parts:
            open_parts.remove(term.part)
            parts[term.part].append(term)
        else:
            left.append(term)
    turned = number("parts", len(left)) if left else 0
    for role, term in zip(open_parts, [*left[turned:], *left[:turned]], strict=True):
        parts[role].append(term)
    return RoleAssignment(*(tuple(parts[role]) for role in (Role.SUPPLY, Role.WARD, Role.THREAT, Role.GOAL)))


def increase(quantity: Quantity, size: Size = Size.MEDIUM) -> Flow:
    """Return a flow that increases a quantity."""
    return Flow(quantity.name, rises=True, size=size)


def decrease(quantity: Quantity, size: Size = Size.MEDIUM) -> Flow:
    """Return a flow that decreases a quantity."""
    return Flow(quantity.name, rises=False, size=size)


def template_actions(quantities: PlotQuantities, format_phrase: Say) -> Iterator[Action]:
    """Yield the actions of the template; their names are phrases around the terms of the quantities."""
    first, *others = quantities.goals
    supply, ward, threat = quantities.supplies[0], quantities.wards[0], quantities.threats[0]
    spare, other_ward, other_threat = quantities.supplies[-1], quantities.wards[-1], quantities.threats[-1]
    doubts = [increase(one.doubts, Size.SMALL) for one in quantities.secrets]
    yield Action(
        format_phrase("work", first.term),
        (increase(first, Size.SMALL), decrease(spare, Size.SMALL)),
        is_scaled=True,
    )
    for goal in others:
        yield Action(
            format_phrase("work", goal.term),
            (increase(goal, Size.LARGE), decrease(supply, Size.MEDIUM)),
        )
    for place, one in enumerate(quantities.wards):
        paid = quantities.supplies[place % len(quantities.supplies)]
        yield Action(
            format_phrase("protect", one.term),
            (increase(one, Size.LARGE), decrease(paid, Size.SMALL)),
        )
    for place, one in enumerate(quantities.threats):
        paid = quantities.supplies[(place + 1) % len(quantities.supplies)]
        yield Action(
            format_phrase("contain", one.term),
            (decrease(one, Size.LARGE), decrease(paid, Size.SMALL), increase(quantities.wear, Size.SMALL)),
        )
    for place, one in enumerate(quantities.supplies):
        drawn = quantities.wards[place % len(quantities.wards)]
        pressed = quantities.threats[place % len(quantities.threats)]
        yield Action(
            format_phrase("trade", drawn.term, one.term),
            (
                increase(one, Size.LARGE),
                decrease(drawn, Size.MEDIUM),
                increase(pressed, Size.SMALL),
                *doubts[:1],
            ),
        )
    yield Action(
        format_phrase("stake", other_ward.term, first.term),
        (
            increase(first, Size.LARGE),
            decrease(other_ward, Size.LARGE),
            increase(quantities.wear, Size.SMALL),
            *doubts[1:2],
        ),
    )
    yield Action(
        format_phrase("prepare", threat.term),
        (increase(ward, Size.LARGE), decrease(supply, Size.SMALL)),
        is_delayed=True,
    )
    yield Action(
        format_phrase("commit", spare.term, first.term),
        (
            increase(first, Size.LARGE),
            decrease(spare, Size.LARGE),
            increase(other_threat, Size.MEDIUM),
            *doubts[-1:],
        ),
        is_final=True,
    )
    for place, person in enumerate(quantities.secrets):
        given = [*quantities.supplies, *quantities.wards][
            place % (len(quantities.supplies) + len(quantities.wards))
        ]
        pressed = quantities.threats[place % len(quantities.threats)]
        yield Action(
            format_phrase("listen", person.name),
            (
                decrease(person.reserve, Size.SMALL),
                increase(given),
                decrease(person.doubts, Size.SMALL),
                increase(pressed, Size.SMALL),
            ),
        )


def template_events(
    quantities: PlotQuantities,
    spare: tuple[str, str],
    format_phrase: Say,
) -> Iterator[Event]:
    """Yield the events of the template; the spare terms are for the release of wear and for relief."""
    ward, supply = quantities.wards[0], quantities.supplies[0]
    for place, one in enumerate(quantities.threats):
        worried = quantities.secrets[place :: len(quantities.threats)]
        doubts = (increase(person.doubts, Size.SMALL) for person in worried)
        yield Event(format_phrase("rise", one.term), (increase(one), *doubts), Chance.FREQUENT)
    for place, one in enumerate(quantities.wards):
        threat = quantities.threats[place % len(quantities.threats)]
        yield Event(
            format_phrase("strain", one.term),
            (decrease(one),),
            Chance.OCCASIONAL,
            Trigger(threat.name, is_high=True),
            lasts=True,
        )
    for place, one in enumerate(quantities.supplies):
        chance = Chance.RARE if place == 0 else Chance.OCCASIONAL
        yield Event(format_phrase("short", one.term), (decrease(one),), chance)
    struck, relieved = spare
    yield Event(
        format_phrase("burst", struck),
        (decrease(ward, Size.LARGE), decrease(quantities.wear)),
        Chance.FREQUENT,
        Trigger(quantities.wear.name, is_high=True),
    )
    yield Event(
        format_phrase("relief", relieved),
        (increase(supply),),
        Chance.RARE,
        Trigger(quantities.goals[0].name, is_high=True),
    )
    for place, person in enumerate(quantities.secrets):
        hurt = [*quantities.wards, *quantities.supplies][
            place % (len(quantities.wards) + len(quantities.supplies))
        ]
        yield Event(
            format_phrase("lapse", person.name),
            (decrease(hurt), decrease(person.doubts)),
            Chance.OCCASIONAL,
            Trigger(person.doubts.name, is_high=True),
        )


@dataclass(frozen=True, slots=True)
class CharacterSecrets:
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
class PlotQuantities:
    """Quantities of a scenario, by role.

    Attributes:
        wear: hidden damage of shortcuts, until an event releases it.
    """

    supplies: tuple[Quantity, ...]
    wards: tuple[Quantity, ...]
    threats: tuple[Quantity, ...]
    goals: tuple[Quantity, ...]
    wear: Quantity
    secrets: tuple[CharacterSecrets, ...]

    def all_quantities(self) -> tuple[Quantity, ...]:
        """Return all quantities."""
        kept = (part for one in self.secrets for part in (one.reserve, one.doubts))
        return (*self.supplies, *self.wards, *self.threats, *self.goals, self.wear, *kept)


def collect_quantities(
    assignment: RoleAssignment,
    people: Sequence[str],
    phrases: Mapping[str, str],
) -> PlotQuantities:
    """Return the quantities for the assigned roles."""

    def named(use: str, term: str, role: Role, **more: object) -> Quantity:
        return Quantity(phrases[use].format(a=term), role, term=term, **more)  # type: ignore[arg-type]

    def played(use: str, terms: Sequence[Term], role: Role) -> Iterator[Quantity]:
        for place, term in enumerate(terms):
            # Only one supply decays. If all did, actions would not matter.
            fades = role is Role.SUPPLY and place == 0
            yield named(use, term.text, role, fades=fades, amount=term.countable_amount)

    supplies = tuple(played("stock", assignment.supplies, Role.SUPPLY))
    wards = tuple(played("ward", assignment.wards, Role.WARD))
    confidants = tuple(
        CharacterSecrets(
            person,
            named(
                "reserve",
                supplies[place % len(supplies)].term,
                Role.SUPPLY,
                start=Size.SMALL,
                holder=person,
            )
            if place < len(supplies)
            else named("reserve", wards[place % len(wards)].term, Role.WARD, start=Size.SMALL, holder=person),
            named("doubts", person, Role.THREAT, start=Size.SMALL, holder=person),
        )
        for place, person in enumerate(people)
    )
    return PlotQuantities(
        supplies,
        wards,
        tuple(played("threat", assignment.threats, Role.THREAT)),
        tuple(played("goal", assignment.goals, Role.GOAL)),
        named("wear", wards[0].term, Role.THREAT, start=Size.SMALL, is_hidden=True),
        confidants,
    )


def compose_from_analysis(analysis: TermSet, number: Callable[[str, int], int]) -> Blueprint:
    """Return the blueprint of an analysed text.

    Args:
        analysis: the analysis, with at least `FEWEST` terms by descending salience.
        number: seeded number for a tag, below a bound; decides what the text does not specify.
    """
    phrases = analysis.language.rules

    def say(use: str, first: str, second: str = "") -> str:
        return phrases[use].format(a=first, b=second)

    parts = assign_roles(analysis.terms, number)
    played = collect_quantities(parts, analysis.people, phrases)
    texts = [term.text for term in analysis.terms]
    spare = (texts[number("surprise", len(texts))], texts[number("comfort", len(texts))])
    whole, due = (*analysis.spans[:1], *analysis.spans[-1:][: len(analysis.spans) > 1], 0.0, 0.0)[:2]
    return Blueprint(
        title=analysis.title,
        phrases=phrases,
        quantities=played.all_quantities(),
        actions=tuple(template_actions(played, say)),
        events=tuple(template_events(played, spare, say)),
        people=analysis.people,
        player=analysis.player,
        has_deadline=bool(due) or number("deadline", 2) == 0,
        hours=whole,
        due_hours=due,
    )
