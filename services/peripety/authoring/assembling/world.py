"""Complete blueprint with numbers: the input for actions, events and endings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.authoring.assembling.gauges import HIDDEN, PRIVATE, PUBLIC, STEPS, Gauge, Move, Scale
from peripety.authoring.assembling.identifiers import PLAYER, identifiers
from peripety.authoring.blueprint import Quantity, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.authoring.assembling.timing import Timing
    from peripety.authoring.blueprint import Blueprint, Flow

__all__ = ["World", "world"]


@dataclass(frozen=True, slots=True)
class World:
    """Blueprint with numbers and identifiers.

    Attributes:
        blueprint: the complete blueprint.
        gauges: its quantities, by name.
        marks: for each delayed or one-time action, by name: a private counter of the player, with the number
            of pending or completed uses.
        people: the identifier of each person, by name.
        actions: the identifier of each action, by name.
        events: the identifier of each event, by name.
        timing: the time scale.
        due: the share of the goal that the deadline requires.
        pressures: factor of the weight of harmful events, by the name of the harmed quantity.
    """

    blueprint: Blueprint
    gauges: Mapping[str, Gauge]
    marks: Mapping[str, Gauge]
    people: Mapping[str, str]
    actions: Mapping[str, str]
    events: Mapping[str, str]
    timing: Timing
    due: float
    pressures: Mapping[str, float]

    @property
    def ids(self) -> frozenset[str]:
        """Return all identifiers in use."""
        return frozenset((*self.people.values(), *self.actions.values(), *self.events.values()))

    def of_role(self, *roles: Role) -> list[Gauge]:
        """Return the public gauges of these roles, in the order of the blueprint."""
        return [gauge for gauge in self.gauges.values() if gauge.is_public and gauge.role in roles]

    def moves(self, flows: Iterable[Flow]) -> list[Move]:
        """Return flows as changes of gauges."""
        return [
            Move(self.gauges[flow.quantity], STEPS[flow.size] * (1 if flow.rises else -1)) for flow in flows
        ]

    def say(self, use: str, term: str) -> str:
        """Return a phrase filled with a term."""
        return self.blueprint.phrases[use].format(a=term, b=term)


def world(
    blueprint: Blueprint,
    scales: Mapping[str, Scale],
    timing: Timing,
    due: float,
    pressures: Mapping[str, float],
) -> World:
    """Return the world of a complete blueprint, in the given numbers."""
    people = identifiers("p", blueprint.people, [PLAYER])
    actions = identifiers("a", [action.name for action in blueprint.actions], people.values())
    taken = [*people.values(), *actions.values()]
    mine = f"{PRIVATE}.{PLAYER}"
    return World(
        blueprint=blueprint,
        gauges={one.name: Gauge(one, scales[one.name], _parent(one, people)) for one in blueprint.quantities},
        marks={
            action.name: Gauge(Quantity(action.name, Role.THREAT), Scale(1, 0, 1), mine)
            for action in blueprint.actions
            if action.is_delayed or action.is_final
        },
        people=people,
        actions=actions,
        events=identifiers("e", [event.name for event in blueprint.events], taken),
        timing=timing,
        due=due,
        pressures=pressures,
    )


def _parent(quantity: Quantity, people: Mapping[str, str]) -> str:
    if quantity.is_hidden:
        return HIDDEN
    return f"{PRIVATE}.{people[quantity.holder]}" if quantity.holder else PUBLIC
