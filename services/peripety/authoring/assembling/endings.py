"""Win and loss conditions, as rules and as language-neutral labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.authoring.assembling.conditions import Condition, all_of, variable
from peripety.authoring.assembling.identifiers import identifiers
from peripety.authoring.blueprint import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.authoring.assembling.world import World

__all__ = ["LATE", "Ending", "losses", "specified", "stakes", "wins"]

LATE = "late"
"""The key of the phrase for the deadline ending."""

_ENDS = {Role.SUPPLY: "gone", Role.WARD: "fallen", Role.THREAT: "flood"}


@dataclass(frozen=True, slots=True)
class Ending:
    """Condition that ends a run.

    Attributes:
        use: the key of its phrase.
        term: the term that its phrase is about.
        quantity: the quantity it is about.
        when: the condition.
    """

    use: str
    term: str
    quantity: str
    when: Condition


def losses(world: World) -> Iterator[Ending]:
    """Yield the loss conditions: one for each public quantity, and one for the deadline."""
    for gauge in world.of_role(*_ENDS):
        operator = ">=" if gauge.role is Role.THREAT else "<="
        yield Ending(_ENDS[gauge.role], gauge.term, gauge.name, gauge.compared(operator, gauge.scale.end))
    turn = world.timing.due
    if turn:
        goal = world.of_role(Role.GOAL)[0]
        past = Condition({">=": [variable("turn"), turn]}, f"\u29d7{turn}")
        late = all_of(goal.compared("<", goal.part(world.due)), past)
        yield Ending(LATE, goal.term, goal.name, late)


def wins(world: World) -> Iterator[Ending]:
    """Yield the win condition: enough of every goal."""
    goals = world.of_role(Role.GOAL)
    enough = all_of(*(goal.compared(">=", goal.scale.end) for goal in goals))
    yield Ending("reached", goals[0].term, goals[0].name, enough)


def specified(world: World, endings: Iterable[Ending], taken: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return endings as the specification writes them, with unique identifiers."""
    by_name = {f"{ending.use} {ending.quantity}": ending for ending in endings}
    ids = identifiers("c", by_name, [*world.ids, *taken])
    return [
        {"id": ids[name], "when": ending.when.logic, "message": world.say(ending.use, ending.term)}
        for name, ending in by_name.items()
    ]


def stakes(world: World) -> str:
    """Return the win and loss conditions as one line of symbols."""
    won = [f"\u2713 {ending.when.shown}" for ending in wins(world)]
    lost = [f"\u2717 {ending.when.shown}" for ending in losses(world)]
    return "; ".join([*won, *lost])
