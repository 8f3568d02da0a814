"""Random events of a specification; most have a condition on an earlier action or omission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.assembling.conditions import all_of
from peripety.authoring.assembling.gauges import helps
from peripety.authoring.blueprint import Chance, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.authoring.assembling.conditions import Condition
    from peripety.authoring.assembling.gauges import Move
    from peripety.authoring.assembling.world import World
    from peripety.authoring.blueprint import Event, Trigger

__all__ = ["events"]

_WEIGHTS = {Chance.RARE: 0.07, Chance.OCCASIONAL: 0.14, Chance.FREQUENT: 0.25}
_LEAST, _MOST = 0.05, 0.3
_LASTING_TURNS = 2
_HIGH, _LOW = 0.4, 0.4


def events(world: World) -> list[dict[str, Any]]:
    """Return the events of a world, as the specification writes them."""
    return [_event(world, event, world.events[event.name]) for event in world.blueprint.events]


def _event(world: World, event: Event, id_: str) -> dict[str, Any]:
    moves = world.moves(event.flows)
    effects = [move.effect() for move in moves]
    if any(not move.gauge.is_public for move in moves):
        # Some effects are hidden, so the event itself is announced.
        effects.append({"op": "addlog", "message": event.name})
    lasting = {"duration": world.timing.duration(_LASTING_TURNS)} if event.lasts else {}
    return {
        "id": id_,
        "name": event.name,
        "weight": _weight(world, event.chance, moves),
        "when": all_of(*_waits_for(world, event.when), *_room(moves)).logic,
        "effects": effects,
        **lasting,
    }


def _weight(world: World, chance: Chance, moves: Iterable[Move]) -> float:
    """Return the weight of an event: its chance, scaled by the calibrated pressure of the harmed quantity."""
    harmed = (
        world.pressures[move.gauge.name]
        for move in moves
        if move.gauge.name in world.pressures and not helps(move.gauge.role, rises=move.steps > 0)
    )
    return round(min(max(_WEIGHTS[chance] * next(harmed, 1.0), _LEAST), _MOST), 3)


def _waits_for(world: World, trigger: Trigger | None) -> Iterator[Condition]:
    if trigger:
        gauge = world.gauges[trigger.quantity]
        operator, share = (">=", _HIGH) if trigger.is_high else ("<=", _LOW)
        yield gauge.compared(operator, gauge.part(share))


def _room(moves: Iterable[Move]) -> Iterator[Condition]:
    """Yield the conditions that leave room for the gains."""
    for move in moves:
        if move.gives and move.gauge.role is not Role.GOAL:
            yield move.gauge.has_room(move.gauge.amount(abs(move.steps)))
