"""Actions of a random specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenarios.random_specs.amounts import fixed, variable
from peripety.scenarios.random_specs.rules import Rule
from peripety.scenarios.random_specs.world import tidy, var

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.scenarios.random_specs.frame import Frame
    from peripety.scenarios.random_specs.source import Source
    from peripety.scenarios.random_specs.world import Flag, Gauge, Goal, Mode, Row, Stock, World

__all__ = ["write_actions"]


def write_actions(source: Source, world: World, frame: Frame) -> list[Rule]:
    """Return actions that relieve every gauge, gather every stock, and use every flag, mode and list.

    The conditions of an action hold at the start, or after one other action or event. The action for the goal
    is the last one, and has no conditions.
    """
    rules = [
        *(_relief(source, world, gauge, frame) for gauge in world.gauges),
        *(_gathering(source, world, stock) for stock in world.stocks),
        *(rule for flag in world.flags for rule in _switching(source, world, flag)),
        *(rule for mode in world.modes for rule in _choosing(source, world, mode)),
        *(rule for row in world.rows for rule in _handling(source, world, row)),
        *(_trade(source, world) for _ in range(source.below(1 + frame.size // 2))),
    ]
    rules = source.shuffled(rules)
    return [*rules, _progress(source, world, world.goal)] if world.goal is not None else rules


def _relief(source: Source, world: World, gauge: Gauge, frame: Frame) -> Rule:
    rule = Rule()
    if source.chance(50):
        rule.spend(source.pick(world.stocks), source.between(1, 3))
    amount = variable(source, world, rule, gauge, source.between(2, 5), params=True)
    rule.relieve(gauge, amount)
    if source.chance(20):
        rule.later(f"later_{world.gauges.index(gauge) + 1}", frame.delay(source, source.between(1, 4)))
    if source.chance(35):
        _harm_another(source, world, rule, gauge)
    if source.chance(15):
        rule.guards.append(gauge.within(1.5, 0.9))
    if world.flags and source.chance(20):
        rule.guards.append(source.pick(world.flags).off())
    return rule


def _harm_another(source: Source, world: World, rule: Rule, gauge: Gauge) -> None:
    others = [other for other in world.gauges if other is not gauge]
    other = source.pick(others)
    rule.harm(other, fixed(other, source.between(1, 2)))


def _gathering(source: Source, world: World, stock: Stock) -> Rule:
    rule = Rule()
    if source.chance(30):
        rule.params["count"] = {"type": "integer", "enum": [1, 2, 4]}
        rule.add(stock.path, rule.derive("gain", {"+": [var("params.count"), 1]}))
    else:
        rule.add(stock.path, source.between(2, 6))
    if source.chance(40):
        gauge = source.pick(world.gauges)
        rule.harm(gauge, fixed(gauge, source.between(1, 2)))
    if source.chance(40):
        rule.guards.append(stock.below(stock.start + source.between(10, 30)))
    return rule


def _switching(source: Source, world: World, flag: Flag) -> Iterator[Rule]:
    """Yield actions that set a flag, unless only events do, and clear it."""
    gauge = source.pick(world.gauges)
    if not flag.by_events:
        setting = Rule(guards=[flag.off()])
        setting.effects.append({"op": "set", "path": flag.path, "value": True})
        setting.relieve(gauge, variable(source, world, setting, gauge, source.between(1, 4), params=True))
        yield setting
    clearing = Rule(guards=[flag.on()])
    clearing.effects.append({"op": "set", "path": flag.path, "value": False})
    if source.chance(60):
        clearing.harm(gauge, fixed(gauge, source.between(1, 2)))
    if source.chance(30):
        clearing.effects.append({"op": "addlog", "message": f"{flag.path.rpartition('.')[2]} is cleared"})
    yield clearing


def _choosing(source: Source, world: World, mode: Mode) -> Iterator[Rule]:
    """Yield actions that change a mode: one with a parameter, or one for each option."""
    if mode.patched:
        yield from (_patching(source, world, mode, option) for option in mode.options)
        return
    rule = Rule(params={"option": {"type": "string", "enum": list(mode.options)}})
    rule.guards.append(mode.differs(var("params.option"), 1.0))
    rule.effects.append(
        {"op": "set", "path": mode.path, "value": rule.derive("chosen", var("params.option"))}
    )
    gauge = source.pick(world.gauges)
    rule.relieve(gauge, fixed(gauge, source.between(1, 2)))
    yield rule


def _patching(source: Source, world: World, mode: Mode, option: str) -> Rule:
    rule = Rule(guards=[mode.differs(option, 1 - 1 / len(mode.options))])
    value = {"level": option, "mark": source.between(1, 9)}
    rule.effects.append({"op": "patch", "path": mode.record, "value": value})
    gauge = source.pick(world.gauges)
    rule.relieve(gauge, variable(source, world, rule, gauge, source.between(1, 3)))
    return rule


def _handling(source: Source, world: World, row: Row) -> Iterator[Rule]:
    """Yield actions that add an item to a list, and remove one."""
    gauge = source.pick(world.gauges)
    filling = Rule(guards=[row.open()])
    filling.effects.append({"op": "push", "path": row.path, "value": row.item(source.between(1, 5))})
    filling.relieve(gauge, fixed(gauge, source.between(1, 3)))
    yield filling
    taking = Rule(guards=[row.filled()])
    taking.effects.append({"op": "pop", "path": row.path})
    taking.add(source.pick(world.stocks).path, source.between(1, 4))
    if source.chance(40):
        taking.harm(gauge, fixed(gauge, 1))
    yield taking


def _trade(source: Source, world: World) -> Rule:
    """Return an action that relieves one gauge and harms another."""
    rule = Rule()
    better = source.pick(world.gauges)
    rule.relieve(better, variable(source, world, rule, better, source.between(2, 6), params=True))
    _harm_another(source, world, rule, better)
    if source.chance(40):
        rule.guards.append(better.within(source.pick((0.9, 1.2, 1.6)), 0.8))
    return rule


def _progress(source: Source, world: World, goal: Goal) -> Rule:
    """Return the action for the goal."""
    rule = Rule()
    if source.chance(25):
        rule.params["count"] = {"type": "integer", "minimum": 1, "maximum": 2}
        rule.add(goal.path, rule.derive("gain", {"*": [var("params.count"), tidy(goal.step)]}))
    else:
        rule.add(goal.path, tidy(goal.step))
    if source.chance(70):
        gauge = source.pick(world.gauges)
        rule.harm(gauge, fixed(gauge, source.between(1, 2)))
    return rule
