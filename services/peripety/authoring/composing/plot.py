"""Plot template of every scenario from a text. Any term can fill any role.

supplies  are spent by every action; one decays
wards     are protected; while the first is in good shape, work has more effect
threats   grow by chance and by neglect, and harm the wards once they are high
goals     are worked towards; enough of each wins, too little of the first at the deadline loses
wear      is hidden: shortcuts increase it until an event releases it
people    hold back a reserve; their doubts grow with the threats and with costs that others bear
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.authoring.blueprint import Action, Chance, Event, Flow, Size, Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.authoring.blueprint import Quantity
    from peripety.authoring.composing.quantities import Stage

    Say = Callable[..., str]

__all__ = ["actions", "events"]


def up(quantity: Quantity, size: Size = Size.MEDIUM) -> Flow:
    """Return a flow that increases a quantity."""
    return Flow(quantity.name, rises=True, size=size)


def down(quantity: Quantity, size: Size = Size.MEDIUM) -> Flow:
    """Return a flow that decreases a quantity."""
    return Flow(quantity.name, rises=False, size=size)


def actions(stage: Stage, say: Say) -> Iterator[Action]:
    """Yield the actions of the template; their names are phrases around the terms of the quantities."""
    first, *others = stage.goals
    supply, ward, threat = stage.supplies[0], stage.wards[0], stage.threats[0]
    spare, other_ward, other_threat = stage.supplies[-1], stage.wards[-1], stage.threats[-1]
    doubts = [up(one.doubts, Size.SMALL) for one in stage.confidants]
    yield Action(say("work", first.term), (up(first, Size.SMALL), down(spare, Size.SMALL)), is_scaled=True)
    for goal in others:
        yield Action(say("work", goal.term), (up(goal, Size.LARGE), down(supply, Size.MEDIUM)))
    for place, one in enumerate(stage.wards):
        paid = stage.supplies[place % len(stage.supplies)]
        yield Action(say("protect", one.term), (up(one, Size.LARGE), down(paid, Size.SMALL)))
    for place, one in enumerate(stage.threats):
        paid = stage.supplies[(place + 1) % len(stage.supplies)]
        yield Action(
            say("contain", one.term),
            (down(one, Size.LARGE), down(paid, Size.SMALL), up(stage.wear, Size.SMALL)),
        )
    for place, one in enumerate(stage.supplies):
        drawn = stage.wards[place % len(stage.wards)]
        pressed = stage.threats[place % len(stage.threats)]
        yield Action(
            say("trade", drawn.term, one.term),
            (up(one, Size.LARGE), down(drawn, Size.MEDIUM), up(pressed, Size.SMALL), *doubts[:1]),
        )
    yield Action(
        say("stake", other_ward.term, first.term),
        (up(first, Size.LARGE), down(other_ward, Size.LARGE), up(stage.wear, Size.SMALL), *doubts[1:2]),
    )
    yield Action(
        say("prepare", threat.term), (up(ward, Size.LARGE), down(supply, Size.SMALL)), is_delayed=True
    )
    yield Action(
        say("commit", spare.term, first.term),
        (up(first, Size.LARGE), down(spare, Size.LARGE), up(other_threat, Size.MEDIUM), *doubts[-1:]),
        is_final=True,
    )
    for place, person in enumerate(stage.confidants):
        given = [*stage.supplies, *stage.wards][place % (len(stage.supplies) + len(stage.wards))]
        pressed = stage.threats[place % len(stage.threats)]
        yield Action(
            say("listen", person.name),
            (
                down(person.reserve, Size.SMALL),
                up(given),
                down(person.doubts, Size.SMALL),
                up(pressed, Size.SMALL),
            ),
        )


def events(stage: Stage, spare: tuple[str, str], say: Say) -> Iterator[Event]:
    """Yield the events of the template; the spare terms are for the release of wear and for relief."""
    ward, supply = stage.wards[0], stage.supplies[0]
    for place, one in enumerate(stage.threats):
        worried = stage.confidants[place :: len(stage.threats)]
        doubts = (up(person.doubts, Size.SMALL) for person in worried)
        yield Event(say("rise", one.term), (up(one), *doubts), Chance.FREQUENT)
    for place, one in enumerate(stage.wards):
        threat = stage.threats[place % len(stage.threats)]
        yield Event(
            say("strain", one.term),
            (down(one),),
            Chance.OCCASIONAL,
            Trigger(threat.name, is_high=True),
            lasts=True,
        )
    for place, one in enumerate(stage.supplies):
        chance = Chance.RARE if place == 0 else Chance.OCCASIONAL
        yield Event(say("short", one.term), (down(one),), chance)
    struck, relieved = spare
    yield Event(
        say("burst", struck),
        (down(ward, Size.LARGE), down(stage.wear)),
        Chance.FREQUENT,
        Trigger(stage.wear.name, is_high=True),
    )
    yield Event(
        say("relief", relieved), (up(supply),), Chance.RARE, Trigger(stage.goals[0].name, is_high=True)
    )
    for place, person in enumerate(stage.confidants):
        hurt = [*stage.wards, *stage.supplies][place % (len(stage.wards) + len(stage.supplies))]
        yield Event(
            say("lapse", person.name),
            (down(hurt), down(person.doubts)),
            Chance.OCCASIONAL,
            Trigger(person.doubts.name, is_high=True),
        )
