"""Specification of a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.assembling.actions import actions
from peripety.authoring.assembling.endings import losses, specified, stakes, wins
from peripety.authoring.assembling.events import events
from peripety.authoring.assembling.gauges import tree
from peripety.authoring.assembling.identifiers import PLAYER
from peripety.authoring.blueprint import Role

if TYPE_CHECKING:
    from peripety.authoring.assembling.world import World

__all__ = ["document"]

_BUDGET = {"min_fail_rate": 0.3, "max_fail_rate": 0.7}


def document(world: World, seed: int, *, spec_id: str) -> dict[str, Any]:
    """Return the ScenarioSpec 1.0 of a world."""
    timing = world.timing
    clock = {"clock": {"turn": timing.duration(1)}} if timing.minutes else {}
    lost = specified(world, losses(world))
    won = specified(world, wins(world), [ending["id"] for ending in lost])
    return {
        "spec_version": "1.0",
        "id": spec_id,
        "name": world.blueprint.title,
        "seed": seed,
        **clock,
        "horizon": timing.horizon,
        "entities": _entities(world),
        "state": tree([*world.gauges.values(), *world.marks.values()]),
        "actions": actions(world),
        "random_events": events(world),
        "loss_conditions": lost,
        "win_conditions": won,
        "negativity_budget": {**_BUDGET, "decay_per_turn": _decay(world)},
    }


def _decay(world: World) -> dict[str, float]:
    """Return the change per turn of each quantity that decays, by path."""
    return {
        gauge.path: gauge.amount(-1 if gauge.role is Role.THREAT else 1)
        for gauge in world.gauges.values()
        if gauge.quantity.fades
    }


def _entities(world: World) -> list[dict[str, Any]]:
    player = {"id": PLAYER, "description": stakes(world), "playable": True}
    if you := world.blueprint.player or world.blueprint.phrases.get("you"):
        player["name"] = you
    return [player, *({"id": id_, "name": person} for person, id_ in world.people.items())]
