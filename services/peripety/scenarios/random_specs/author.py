"""Assembly of a random specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.scenarios.random_specs.actions import write_actions
from peripety.scenarios.random_specs.calibration import settle
from peripety.scenarios.random_specs.endings import write_losses, write_wins
from peripety.scenarios.random_specs.events import write_events
from peripety.scenarios.random_specs.frame import Frame, write_surroundings
from peripety.scenarios.random_specs.source import Source
from peripety.scenarios.random_specs.world import World

if TYPE_CHECKING:
    from peripety.scenarios.random_specs.rules import Rule

__all__ = ["write_spec"]

Json = dict[str, Any]


def write_spec(seed: int, index: int) -> Json:
    """Return the specification of a seed and an index."""
    source = Source(seed, index)
    frame = Frame.chosen(source)
    world = World.laid_out(source, frame)
    actions = write_actions(source, world, frame)
    events = write_events(source, world, frame)
    least_fail_rate = settle(source, world, frame, actions, events)
    spec: Json = {
        "spec_version": "1.0",
        "id": f"random_{seed}_{index}",
        "name": f"Random {seed}/{index}",
        "seed": source.bits() >> 11,
        "state": world.state(),
        "actions": [_action(rule, number) for number, rule in enumerate(actions, 1)],
        "random_events": [_event(rule, number, source, frame) for number, rule in enumerate(events, 1)],
        "loss_conditions": write_losses(source, world, frame),
        "negativity_budget": _budget(world, least_fail_rate),
        **write_surroundings(source, world, frame),
    }
    wins = write_wins(source, world)
    return {**spec, "win_conditions": wins} if wins else spec


def _action(rule: Rule, number: int) -> Json:
    named = {"id": f"act_{number}", "params": rule.params, "preconditions": rule.condition()}
    return {**named, **_does(rule)}


def _event(rule: Rule, number: int, source: Source, frame: Frame) -> Json:
    named = {"id": f"event_{number}", "weight": rule.weight / 100, "when": rule.condition()}
    lasting = {"duration": frame.span(source, rule.turns)} if rule.turns > 1 else {}
    return {**named, **lasting, **_does(rule)}


def _does(rule: Rule) -> Json:
    return {"effects": rule.effects, "derives": rule.derives} if rule.derives else {"effects": rule.effects}


def _budget(world: World, least_fail_rate: float) -> Json:
    decay = {gauge.path: gauge.sense * gauge.steps(gauge.drain) for gauge in world.gauges if gauge.drain > 0}
    return {"min_fail_rate": least_fail_rate, "decay_per_turn": decay}
