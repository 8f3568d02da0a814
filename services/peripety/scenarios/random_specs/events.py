"""Random events of a random specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenarios.random_specs.amounts import fixed, variable
from peripety.scenarios.random_specs.rules import Rule
from peripety.scenarios.random_specs.world import Guard, var

if TYPE_CHECKING:
    from peripety.scenarios.random_specs.frame import Frame
    from peripety.scenarios.random_specs.source import Source
    from peripety.scenarios.random_specs.world import Flag, Gauge, Mode, Row, Stock, World

__all__ = ["write_events"]

_LIGHTEST, _HEAVIEST = 5, 30
_HEAVIEST_TOGETHER = 92
_MOST = _HEAVIEST_TOGETHER // _LIGHTEST


def write_events(source: Source, world: World, frame: Frame) -> list[Rule]:
    """Return events that harm each gauge; their weights leave turns without any event."""
    rules = [_threat(source, gauge, frame) for gauge in world.gauges]
    rules += [_raising(source, world, flag) for flag in world.flags if flag.by_events]
    rules += [_disturbing(source, world, row) for row in world.rows]
    others = min(source.below(2 + frame.size), _MOST - len(rules))
    rules += [_other(source, world, frame) for _ in range(others)]
    rules = source.shuffled(rules)
    _weigh(source, rules)
    return rules


def _other(source: Source, world: World, frame: Frame) -> Rule:
    gauge = source.pick(world.gauges)
    match source.below(3):
        case 0:
            return _harm(source, world, gauge, frame)
        case 1:
            return _help(source, world, gauge, frame)
        case _:
            return _theft(source, world, gauge)


def _weigh(source: Source, rules: list[Rule]) -> None:
    left = _HEAVIEST_TOGETHER
    for following, rule in zip(reversed(range(len(rules))), rules, strict=True):
        rule.weight = source.between(_LIGHTEST, max(_LIGHTEST, min(_HEAVIEST, left - _LIGHTEST * following)))
        left -= rule.weight


def _threat(source: Source, gauge: Gauge, frame: Frame) -> Rule:
    """Return an event that harms a gauge and cannot be prevented."""
    rule = Rule(guards=[_since(source, frame)] if source.chance(25) else [])
    rule.turns = source.between(2, 4) if source.chance(25) else 1
    gauge.threat = source.between(2, 6) if rule.turns == 1 else source.between(1, 3)
    rule.harm(gauge, fixed(gauge, gauge.threat))
    return rule


def _harm(source: Source, world: World, gauge: Gauge, frame: Frame) -> Rule:
    rule = Rule(guards=_guards(source, world, frame))
    rule.turns = source.between(2, 4) if source.chance(25) else 1
    steps = source.between(2, 6) if rule.turns == 1 else source.between(1, 3)
    rule.harm(gauge, variable(source, world, rule, gauge, steps))
    if rule.turns == 1 and source.chance(12):
        rule.later(f"delayed_{world.gauges.index(gauge) + 1}", frame.delay(source, source.between(1, 3)))
    if source.chance(20):
        other = source.pick(world.gauges)
        rule.harm(other, fixed(other, 1))
    return rule


def _help(source: Source, world: World, gauge: Gauge, frame: Frame) -> Rule:
    rule = Rule(guards=_guards(source, world, frame))
    rule.relieve(gauge, variable(source, world, rule, gauge, source.between(1, 4)))
    if source.chance(50):
        rule.add(source.pick(world.stocks).path, source.between(1, 5))
    return rule


def _theft(source: Source, world: World, gauge: Gauge) -> Rule:
    """Return an event that reduces a stock and harms a gauge slightly."""
    rule = Rule()
    stock = source.pick(world.stocks)
    if source.chance(50):
        rule.effects.append(
            {"op": "mul", "path": stock.path, "value": source.pick((0.5, 0.6, 0.75, 0.8, 0.9))}
        )
    else:
        rule.spend(stock, source.between(1, 4))
    rule.harm(gauge, fixed(gauge, 1))
    return rule


def _raising(source: Source, world: World, flag: Flag) -> Rule:
    """Return an event that sets a flag which only events set."""
    rule = Rule(guards=[flag.off()])
    rule.effects.append({"op": "set", "path": flag.path, "value": True})
    gauge = source.pick(world.gauges)
    rule.harm(gauge, fixed(gauge, source.between(1, 2)))
    return rule


def _disturbing(source: Source, world: World, row: Row) -> Rule:
    """Return an event that adds an item to a list, or removes one."""
    gauge = source.pick(world.gauges)
    if source.chance(50):
        rule = Rule(guards=[row.open()])
        rule.effects.append({"op": "push", "path": row.path, "value": row.item(source.between(1, 9))})
        rule.harm(gauge, fixed(gauge, source.between(1, 2)))
    else:
        rule = Rule(guards=[row.filled()])
        rule.effects.append({"op": "pop", "path": row.path})
        rule.relieve(gauge, fixed(gauge, source.between(1, 2)))
    return rule


def _guards(source: Source, world: World, frame: Frame) -> list[Guard]:
    """Return at most one condition, which holds at the start or may hold soon."""
    if source.chance(45):
        return []
    guard = _guard(source, world, frame)
    return [guard.or_else(_guard(source, world, frame)) if source.chance(20) else guard]


def _guard(source: Source, world: World, frame: Frame) -> Guard:
    ways = [
        lambda: _since(source, frame),
        lambda: source.pick(world.gauges).within(0.9, 0.7),
        lambda: source.pick(world.gauges).beyond(source.pick((0.2, 0.3, 0.5)), 0.7),
        lambda: source.pick(world.stocks).affords(source.between(1, 3)),
        lambda: _scarce(source.pick(world.stocks)),
    ]
    if world.flags:
        ways += [lambda: source.pick(world.flags).on(), lambda: source.pick(world.flags).off()]
    if world.modes:
        ways.append(lambda: _by_mode(source, source.pick(world.modes)))
    if world.rows:
        ways.append(lambda: source.pick(world.rows).reaching(2))
    return source.pick(ways)()


def _since(source: Source, frame: Frame) -> Guard:
    first = source.between(2, max(2, min(6, frame.horizon // 4)))
    return Guard(lambda: {">=": [var("turn"), first]}, 0.85)


def _scarce(stock: Stock) -> Guard:
    return stock.below(stock.start + 3)


def _by_mode(source: Source, mode: Mode) -> Guard:
    option = source.pick(mode.options)
    return mode.equals(option) if source.chance(50) else mode.differs(option, 1 - 1 / len(mode.options))
