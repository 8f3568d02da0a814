"""Actions and random events.

Actions of a random specification.

Random events of a random specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenario.spec_generator.rules import RuleDraft, fixed_amount, variable_amount
from peripety.scenario.spec_generator.state_vars import StateCondition, read_path, round_to_thousandths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.scenario.spec_generator.state_vars import (
        CounterVar,
        DrawStream,
        FlagVar,
        GaugeVar,
        GoalVar,
        ListVar,
        ModeVar,
        SpecSkeleton,
        StateVars,
    )


def write_actions(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> list[RuleDraft]:
    """Return actions that relieve every gauge, gather every stock, and use every flag, mode and list.

    The conditions of an action hold at the start, or after one other action or event. The action for the goal
    is the last one, and has no conditions.
    """
    rules = [
        *(_relief_action(source, world, gauge, frame) for gauge in world.gauges),
        *(_gathering_action(source, world, stock) for stock in world.stocks),
        *(rule for flag in world.flags for rule in _flag_actions(source, world, flag)),
        *(rule for mode in world.modes for rule in _mode_actions(source, world, mode)),
        *(rule for row in world.rows for rule in _list_actions(source, world, row)),
        *(_trade_action(source, world) for _ in range(source.below(1 + frame.size // 2))),
    ]
    rules = source.shuffled(rules)
    return [*rules, _goal_action(source, world, world.goal)] if world.goal is not None else rules


def _relief_action(source: DrawStream, world: StateVars, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    rule = RuleDraft()
    if source.chance(50):
        rule.spend(source.pick(world.stocks), source.between(1, 3))
    amount = variable_amount(source, world, rule, gauge, source.between(2, 5), params=True)
    rule.relieve(gauge, amount)
    if source.chance(20):
        rule.later(f"later_{world.gauges.index(gauge) + 1}", frame.delay(source, source.between(1, 4)))
    if source.chance(35):
        _add_harm(source, world, rule, gauge)
    if source.chance(15):
        rule.guards.append(gauge.within(1.5, 0.9))
    if world.flags and source.chance(20):
        rule.guards.append(source.pick(world.flags).off())
    return rule


def _add_harm(source: DrawStream, world: StateVars, rule: RuleDraft, gauge: GaugeVar) -> None:
    others = [other for other in world.gauges if other is not gauge]
    other = source.pick(others)
    rule.harm(other, fixed_amount(other, source.between(1, 2)))


def _gathering_action(source: DrawStream, world: StateVars, stock: CounterVar) -> RuleDraft:
    rule = RuleDraft()
    if source.chance(30):
        rule.params["count"] = {"type": "integer", "enum": [1, 2, 4]}
        rule.add(stock.path, rule.derive("gain", {"+": [read_path("params.count"), 1]}))
    else:
        rule.add(stock.path, source.between(2, 6))
    if source.chance(40):
        gauge = source.pick(world.gauges)
        rule.harm(gauge, fixed_amount(gauge, source.between(1, 2)))
    if source.chance(40):
        rule.guards.append(stock.below(stock.start + source.between(10, 30)))
    return rule


def _flag_actions(source: DrawStream, world: StateVars, flag: FlagVar) -> Iterator[RuleDraft]:
    """Yield actions that set a flag, unless only events do, and clear it."""
    gauge = source.pick(world.gauges)
    if not flag.by_events:
        setting = RuleDraft(guards=[flag.off()])
        setting.effects.append({"op": "set", "path": flag.path, "value": True})
        setting.relieve(
            gauge, variable_amount(source, world, setting, gauge, source.between(1, 4), params=True)
        )
        yield setting
    clearing = RuleDraft(guards=[flag.on()])
    clearing.effects.append({"op": "set", "path": flag.path, "value": False})
    if source.chance(60):
        clearing.harm(gauge, fixed_amount(gauge, source.between(1, 2)))
    if source.chance(30):
        clearing.effects.append({"op": "addlog", "message": f"{flag.path.rpartition('.')[2]} is cleared"})
    yield clearing


def _mode_actions(source: DrawStream, world: StateVars, mode: ModeVar) -> Iterator[RuleDraft]:
    """Yield actions that change a mode: one with a parameter, or one for each option."""
    if mode.patched:
        yield from (_patch_action(source, world, mode, option) for option in mode.options)
        return
    rule = RuleDraft(params={"option": {"type": "string", "enum": list(mode.options)}})
    rule.guards.append(mode.differs(read_path("params.option"), 1.0))
    rule.effects.append(
        {"op": "set", "path": mode.path, "value": rule.derive("chosen", read_path("params.option"))}
    )
    gauge = source.pick(world.gauges)
    rule.relieve(gauge, fixed_amount(gauge, source.between(1, 2)))
    yield rule


def _patch_action(source: DrawStream, world: StateVars, mode: ModeVar, option: str) -> RuleDraft:
    rule = RuleDraft(guards=[mode.differs(option, 1 - 1 / len(mode.options))])
    value = {"level": option, "mark": source.between(1, 9)}
    rule.effects.append({"op": "patch", "path": mode.record, "value": value})
    gauge = source.pick(world.gauges)
    rule.relieve(gauge, variable_amount(source, world, rule, gauge, source.between(1, 3)))
    return rule


def _list_actions(source: DrawStream, world: StateVars, row: ListVar) -> Iterator[RuleDraft]:
    """Yield actions that add an item to a list, and remove one."""
    gauge = source.pick(world.gauges)
    filling = RuleDraft(guards=[row.open()])
    filling.effects.append({"op": "push", "path": row.path, "value": row.item(source.between(1, 5))})
    filling.relieve(gauge, fixed_amount(gauge, source.between(1, 3)))
    yield filling
    taking = RuleDraft(guards=[row.filled()])
    taking.effects.append({"op": "pop", "path": row.path})
    taking.add(source.pick(world.stocks).path, source.between(1, 4))
    if source.chance(40):
        taking.harm(gauge, fixed_amount(gauge, 1))
    yield taking


def _trade_action(source: DrawStream, world: StateVars) -> RuleDraft:
    """Return an action that relieves one gauge and harms another."""
    rule = RuleDraft()
    better = source.pick(world.gauges)
    rule.relieve(better, variable_amount(source, world, rule, better, source.between(2, 6), params=True))
    _add_harm(source, world, rule, better)
    if source.chance(40):
        rule.guards.append(better.within(source.pick((0.9, 1.2, 1.6)), 0.8))
    return rule


def _goal_action(source: DrawStream, world: StateVars, goal: GoalVar) -> RuleDraft:
    """Return the action for the goal."""
    rule = RuleDraft()
    if source.chance(25):
        rule.params["count"] = {"type": "integer", "minimum": 1, "maximum": 2}
        rule.add(
            goal.path,
            rule.derive("gain", {"*": [read_path("params.count"), round_to_thousandths(goal.step)]}),
        )
    else:
        rule.add(goal.path, round_to_thousandths(goal.step))
    if source.chance(70):
        gauge = source.pick(world.gauges)
        rule.harm(gauge, fixed_amount(gauge, source.between(1, 2)))
    return rule


_LIGHTEST, _HEAVIEST = 5, 30
_HEAVIEST_TOGETHER = 92
_MAX_EVENTS = _HEAVIEST_TOGETHER // _LIGHTEST


def write_events(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> list[RuleDraft]:
    """Return events that harm each gauge; their weights leave turns without any event."""
    rules = [_threat_event(source, gauge, frame) for gauge in world.gauges]
    rules += [_flag_event(source, world, flag) for flag in world.flags if flag.by_events]
    rules += [_list_event(source, world, row) for row in world.rows]
    others = min(source.below(2 + frame.size), _MAX_EVENTS - len(rules))
    rules += [_other_event(source, world, frame) for _ in range(others)]
    rules = source.shuffled(rules)
    _assign_weights(source, rules)
    return rules


def _other_event(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> RuleDraft:
    gauge = source.pick(world.gauges)
    match source.below(3):
        case 0:
            return _harmful_event(source, world, gauge, frame)
        case 1:
            return _helpful_event(source, world, gauge, frame)
        case _:
            return _theft_event(source, world, gauge)


def _assign_weights(source: DrawStream, rules: list[RuleDraft]) -> None:
    left = _HEAVIEST_TOGETHER
    for following, rule in zip(reversed(range(len(rules))), rules, strict=True):
        rule.weight = source.between(_LIGHTEST, max(_LIGHTEST, min(_HEAVIEST, left - _LIGHTEST * following)))
        left -= rule.weight


def _threat_event(source: DrawStream, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    """Return an event that harms a gauge and cannot be prevented."""
    rule = RuleDraft(guards=[_since_turn(source, frame)] if source.chance(25) else [])
    rule.turns = source.between(2, 4) if source.chance(25) else 1
    gauge.threat = source.between(2, 6) if rule.turns == 1 else source.between(1, 3)
    rule.harm(gauge, fixed_amount(gauge, gauge.threat))
    return rule


def _harmful_event(source: DrawStream, world: StateVars, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    rule = RuleDraft(guards=_draw_conditions(source, world, frame))
    rule.turns = source.between(2, 4) if source.chance(25) else 1
    steps = source.between(2, 6) if rule.turns == 1 else source.between(1, 3)
    rule.harm(gauge, variable_amount(source, world, rule, gauge, steps))
    if rule.turns == 1 and source.chance(12):
        rule.later(f"delayed_{world.gauges.index(gauge) + 1}", frame.delay(source, source.between(1, 3)))
    if source.chance(20):
        other = source.pick(world.gauges)
        rule.harm(other, fixed_amount(other, 1))
    return rule


def _helpful_event(source: DrawStream, world: StateVars, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    rule = RuleDraft(guards=_draw_conditions(source, world, frame))
    rule.relieve(gauge, variable_amount(source, world, rule, gauge, source.between(1, 4)))
    if source.chance(50):
        rule.add(source.pick(world.stocks).path, source.between(1, 5))
    return rule


def _theft_event(source: DrawStream, world: StateVars, gauge: GaugeVar) -> RuleDraft:
    """Return an event that reduces a stock and harms a gauge slightly."""
    rule = RuleDraft()
    stock = source.pick(world.stocks)
    if source.chance(50):
        rule.effects.append(
            {"op": "mul", "path": stock.path, "value": source.pick((0.5, 0.6, 0.75, 0.8, 0.9))}
        )
    else:
        rule.spend(stock, source.between(1, 4))
    rule.harm(gauge, fixed_amount(gauge, 1))
    return rule


def _flag_event(source: DrawStream, world: StateVars, flag: FlagVar) -> RuleDraft:
    """Return an event that sets a flag which only events set."""
    rule = RuleDraft(guards=[flag.off()])
    rule.effects.append({"op": "set", "path": flag.path, "value": True})
    gauge = source.pick(world.gauges)
    rule.harm(gauge, fixed_amount(gauge, source.between(1, 2)))
    return rule


def _list_event(source: DrawStream, world: StateVars, row: ListVar) -> RuleDraft:
    """Return an event that adds an item to a list, or removes one."""
    gauge = source.pick(world.gauges)
    if source.chance(50):
        rule = RuleDraft(guards=[row.open()])
        rule.effects.append({"op": "push", "path": row.path, "value": row.item(source.between(1, 9))})
        rule.harm(gauge, fixed_amount(gauge, source.between(1, 2)))
    else:
        rule = RuleDraft(guards=[row.filled()])
        rule.effects.append({"op": "pop", "path": row.path})
        rule.relieve(gauge, fixed_amount(gauge, source.between(1, 2)))
    return rule


def _draw_conditions(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> list[StateCondition]:
    """Return at most one condition, which holds at the start or may hold soon."""
    if source.chance(45):
        return []
    guard = _draw_condition(source, world, frame)
    return [guard.or_else(_draw_condition(source, world, frame)) if source.chance(20) else guard]


def _draw_condition(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> StateCondition:
    ways = [
        lambda: _since_turn(source, frame),
        lambda: source.pick(world.gauges).within(0.9, 0.7),
        lambda: source.pick(world.gauges).beyond(source.pick((0.2, 0.3, 0.5)), 0.7),
        lambda: source.pick(world.stocks).affords(source.between(1, 3)),
        lambda: _is_scarce(source.pick(world.stocks)),
    ]
    if world.flags:
        ways += [lambda: source.pick(world.flags).on(), lambda: source.pick(world.flags).off()]
    if world.modes:
        ways.append(lambda: _mode_condition(source, source.pick(world.modes)))
    if world.rows:
        ways.append(lambda: source.pick(world.rows).reaching(2))
    return source.pick(ways)()


def _since_turn(source: DrawStream, frame: SpecSkeleton) -> StateCondition:
    first = source.between(2, max(2, min(6, frame.horizon // 4)))
    return StateCondition(lambda: {">=": [read_path("turn"), first]}, 0.85)


def _is_scarce(stock: CounterVar) -> StateCondition:
    return stock.below(stock.start + 3)


def _mode_condition(source: DrawStream, mode: ModeVar) -> StateCondition:
    option = source.pick(mode.options)
    return mode.equals(option) if source.chance(50) else mode.differs(option, 1 - 1 / len(mode.options))
