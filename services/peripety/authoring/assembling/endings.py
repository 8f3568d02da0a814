"""What wins and what loses, as rules and in signs that need no language."""

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
"""The use of the ending by the deadline."""

_ENDS = {Role.SUPPLY: "gone", Role.WARD: "fallen", Role.THREAT: "flood"}


@dataclass(frozen=True, slots=True)
class Ending:
    """A way a run ends.

    Attributes:
        use: the connecting text it uses.
        term: what it is about, in words.
        quantity: the quantity it is about.
        when: when it holds.
    """

    use: str
    term: str
    quantity: str
    when: Condition


def losses(world: World) -> Iterator[Ending]:
    """What loses a run: each quantity that everybody knows of, and the deadline."""
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
    """What wins a run: enough of every goal."""
    goals = world.of_role(Role.GOAL)
    enough = all_of(*(goal.compared(">=", goal.scale.end) for goal in goals))
    yield Ending("reached", goals[0].term, goals[0].name, enough)


def specified(world: World, endings: Iterable[Ending], taken: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Endings as the specification has them.

    Args:
        world: what they are about.
        endings: what ends a run.
        taken: identifiers that others have, besides those of the world.
    """
    by_name = {f"{ending.use} {ending.quantity}": ending for ending in endings}
    ids = identifiers("c", by_name, [*world.ids, *taken])
    return [
        {"id": ids[name], "when": ending.when.logic, "message": world.say(ending.use, ending.term)}
        for name, ending in by_name.items()
    ]


def stakes(world: World) -> str:
    """What wins and what loses, in signs."""
    won = [f"\u2713 {ending.when.shown}" for ending in wins(world)]
    lost = [f"\u2717 {ending.when.shown}" for ending in losses(world)]
    return "; ".join([*won, *lost])
