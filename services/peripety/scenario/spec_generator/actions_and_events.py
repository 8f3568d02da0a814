"""Actions and random events of a random specification."""

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
        *(rule for row in world.lists for rule in _list_actions(source, world, row)),
        *(_trade_action(source, world) for _ in range(source.draw_below(1 + frame.size // 2))),
    ]
    rules = source.draw_order(rules)
    return [*rules, _goal_action(source, world, world.goal)] if world.goal is not None else rules


def _relief_action(source: DrawStream, world: StateVars, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    rule = RuleDraft()
    if source.draw_chance(50):
        rule.add_price(source.draw_option(world.stocks), source.draw_between(1, 3))
    amount = variable_amount(source, world, rule, gauge, source.draw_between(2, 5), params=True)
    rule.add_relief(gauge, amount)
    if source.draw_chance(20):
        rule.delay_last(
            f"later_{world.gauges.index(gauge) + 1}",
            frame.draw_delay(source, source.draw_between(1, 4)),
        )
    if source.draw_chance(35):
        _add_harm(source, world, rule, gauge)
    if source.draw_chance(15):
        rule.conditions.append(gauge.at_most_share(1.5, 0.9))
    if world.flags and source.draw_chance(20):
        rule.conditions.append(source.draw_option(world.flags).is_clear())
    return rule


def _add_harm(source: DrawStream, world: StateVars, rule: RuleDraft, gauge: GaugeVar) -> None:
    others = [other for other in world.gauges if other is not gauge]
    other = source.draw_option(others)
    rule.add_harm(other, fixed_amount(other, source.draw_between(1, 2)))


def _gathering_action(source: DrawStream, world: StateVars, stock: CounterVar) -> RuleDraft:
    rule = RuleDraft()
    if source.draw_chance(30):
        rule.params["count"] = {"type": "integer", "enum": [1, 2, 4]}
        rule.add_increase(stock.path, rule.add_derived("gain", {"+": [read_path("params.count"), 1]}))
    else:
        rule.add_increase(stock.path, source.draw_between(2, 6))
    if source.draw_chance(40):
        gauge = source.draw_option(world.gauges)
        rule.add_harm(gauge, fixed_amount(gauge, source.draw_between(1, 2)))
    if source.draw_chance(40):
        rule.conditions.append(stock.below(stock.start + source.draw_between(10, 30)))
    return rule


def _flag_actions(source: DrawStream, world: StateVars, flag: FlagVar) -> Iterator[RuleDraft]:
    """Yield actions that set a flag, unless only events do, and clear it."""
    gauge = source.draw_option(world.gauges)
    if not flag.by_events:
        setting = RuleDraft(conditions=[flag.is_clear()])
        setting.effects.append({"op": "set", "path": flag.path, "value": True})
        setting.add_relief(
            gauge,
            variable_amount(source, world, setting, gauge, source.draw_between(1, 4), params=True),
        )
        yield setting
    clearing = RuleDraft(conditions=[flag.is_set()])
    clearing.effects.append({"op": "set", "path": flag.path, "value": False})
    if source.draw_chance(60):
        clearing.add_harm(gauge, fixed_amount(gauge, source.draw_between(1, 2)))
    if source.draw_chance(30):
        clearing.effects.append({"op": "addlog", "message": f"{flag.path.rpartition('.')[2]} is cleared"})
    yield clearing


def _mode_actions(source: DrawStream, world: StateVars, mode: ModeVar) -> Iterator[RuleDraft]:
    """Yield actions that change a mode: one with a parameter, or one for each option."""
    if mode.patched:
        yield from (_patch_action(source, world, mode, option) for option in mode.options)
        return
    rule = RuleDraft(params={"option": {"type": "string", "enum": list(mode.options)}})
    rule.conditions.append(mode.differs(read_path("params.option"), 1.0))
    rule.effects.append(
        {"op": "set", "path": mode.path, "value": rule.add_derived("chosen", read_path("params.option"))},
    )
    gauge = source.draw_option(world.gauges)
    rule.add_relief(gauge, fixed_amount(gauge, source.draw_between(1, 2)))
    yield rule


def _patch_action(source: DrawStream, world: StateVars, mode: ModeVar, option: str) -> RuleDraft:
    rule = RuleDraft(conditions=[mode.differs(option, 1 - 1 / len(mode.options))])
    value = {"level": option, "mark": source.draw_between(1, 9)}
    rule.effects.append({"op": "patch", "path": mode.record_path, "value": value})
    gauge = source.draw_option(world.gauges)
    rule.add_relief(gauge, variable_amount(source, world, rule, gauge, source.draw_between(1, 3)))
    return rule


def _list_actions(source: DrawStream, world: StateVars, row: ListVar) -> Iterator[RuleDraft]:
    """Yield actions that add an item to a list, and remove one."""
    gauge = source.draw_option(world.gauges)
    filling = RuleDraft(conditions=[row.not_full()])
    filling.effects.append(
        {"op": "push", "path": row.path, "value": row.draw_item(source.draw_between(1, 5))},
    )
    filling.add_relief(gauge, fixed_amount(gauge, source.draw_between(1, 3)))
    yield filling
    taking = RuleDraft(conditions=[row.not_empty()])
    taking.effects.append({"op": "pop", "path": row.path})
    taking.add_increase(source.draw_option(world.stocks).path, source.draw_between(1, 4))
    if source.draw_chance(40):
        taking.add_harm(gauge, fixed_amount(gauge, 1))
    yield taking


def _trade_action(source: DrawStream, world: StateVars) -> RuleDraft:
    """Return an action that relieves one gauge and harms another."""
    rule = RuleDraft()
    better = source.draw_option(world.gauges)
    rule.add_relief(
        better,
        variable_amount(source, world, rule, better, source.draw_between(2, 6), params=True),
    )
    _add_harm(source, world, rule, better)
    if source.draw_chance(40):
        rule.conditions.append(better.at_most_share(source.draw_option((0.9, 1.2, 1.6)), 0.8))
    return rule


def _goal_action(source: DrawStream, world: StateVars, goal: GoalVar) -> RuleDraft:
    """Return the action for the goal."""
    rule = RuleDraft()
    if source.draw_chance(25):
        rule.params["count"] = {"type": "integer", "minimum": 1, "maximum": 2}
        rule.add_increase(
            goal.path,
            rule.add_derived("gain", {"*": [read_path("params.count"), round_to_thousandths(goal.step)]}),
        )
    else:
        rule.add_increase(goal.path, round_to_thousandths(goal.step))
    if source.draw_chance(70):
        gauge = source.draw_option(world.gauges)
        rule.add_harm(gauge, fixed_amount(gauge, source.draw_between(1, 2)))
    return rule


_LIGHTEST, _HEAVIEST = 5, 30
_HEAVIEST_TOGETHER = 92
_MAX_EVENTS = _HEAVIEST_TOGETHER // _LIGHTEST


def write_events(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> list[RuleDraft]:
    """Return events that harm each gauge; their weights leave turns without any event."""
    rules = [_threat_event(source, gauge, frame) for gauge in world.gauges]
    rules += [_flag_event(source, world, flag) for flag in world.flags if flag.by_events]
    rules += [_list_event(source, world, row) for row in world.lists]
    others = min(source.draw_below(2 + frame.size), _MAX_EVENTS - len(rules))
    rules += [_other_event(source, world, frame) for _ in range(others)]
    rules = source.draw_order(rules)
    _assign_weights(source, rules)
    return rules


def _other_event(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> RuleDraft:
    gauge = source.draw_option(world.gauges)
    match source.draw_below(3):
        case 0:
            return _harmful_event(source, world, gauge, frame)
        case 1:
            return _helpful_event(source, world, gauge, frame)
        case _:
            return _theft_event(source, world, gauge)


def _assign_weights(source: DrawStream, rules: list[RuleDraft]) -> None:
    left = _HEAVIEST_TOGETHER
    for following, rule in zip(reversed(range(len(rules))), rules, strict=True):
        rule.weight = source.draw_between(
            _LIGHTEST,
            max(_LIGHTEST, min(_HEAVIEST, left - _LIGHTEST * following)),
        )
        left -= rule.weight


def _threat_event(source: DrawStream, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    """Return an event that harms a gauge and cannot be prevented."""
    rule = RuleDraft(conditions=[_since_turn(source, frame)] if source.draw_chance(25) else [])
    rule.turns = source.draw_between(2, 4) if source.draw_chance(25) else 1
    gauge.threat = source.draw_between(2, 6) if rule.turns == 1 else source.draw_between(1, 3)
    rule.add_harm(gauge, fixed_amount(gauge, gauge.threat))
    return rule


def _harmful_event(source: DrawStream, world: StateVars, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    rule = RuleDraft(conditions=_draw_conditions(source, world, frame))
    rule.turns = source.draw_between(2, 4) if source.draw_chance(25) else 1
    steps = source.draw_between(2, 6) if rule.turns == 1 else source.draw_between(1, 3)
    rule.add_harm(gauge, variable_amount(source, world, rule, gauge, steps))
    if rule.turns == 1 and source.draw_chance(12):
        rule.delay_last(
            f"delayed_{world.gauges.index(gauge) + 1}",
            frame.draw_delay(source, source.draw_between(1, 3)),
        )
    if source.draw_chance(20):
        other = source.draw_option(world.gauges)
        rule.add_harm(other, fixed_amount(other, 1))
    return rule


def _helpful_event(source: DrawStream, world: StateVars, gauge: GaugeVar, frame: SpecSkeleton) -> RuleDraft:
    rule = RuleDraft(conditions=_draw_conditions(source, world, frame))
    rule.add_relief(gauge, variable_amount(source, world, rule, gauge, source.draw_between(1, 4)))
    if source.draw_chance(50):
        rule.add_increase(source.draw_option(world.stocks).path, source.draw_between(1, 5))
    return rule


def _theft_event(source: DrawStream, world: StateVars, gauge: GaugeVar) -> RuleDraft:
    """Return an event that reduces a stock and harms a gauge slightly."""
    rule = RuleDraft()
    stock = source.draw_option(world.stocks)
    if source.draw_chance(50):
        rule.effects.append(
            {"op": "mul", "path": stock.path, "value": source.draw_option((0.5, 0.6, 0.75, 0.8, 0.9))},
        )
    else:
        rule.add_price(stock, source.draw_between(1, 4))
    rule.add_harm(gauge, fixed_amount(gauge, 1))
    return rule


def _flag_event(source: DrawStream, world: StateVars, flag: FlagVar) -> RuleDraft:
    """Return an event that sets a flag which only events set."""
    rule = RuleDraft(conditions=[flag.is_clear()])
    rule.effects.append({"op": "set", "path": flag.path, "value": True})
    gauge = source.draw_option(world.gauges)
    rule.add_harm(gauge, fixed_amount(gauge, source.draw_between(1, 2)))
    return rule


def _list_event(source: DrawStream, world: StateVars, row: ListVar) -> RuleDraft:
    """Return an event that adds an item to a list, or removes one."""
    gauge = source.draw_option(world.gauges)
    if source.draw_chance(50):
        rule = RuleDraft(conditions=[row.not_full()])
        rule.effects.append(
            {"op": "push", "path": row.path, "value": row.draw_item(source.draw_between(1, 9))},
        )
        rule.add_harm(gauge, fixed_amount(gauge, source.draw_between(1, 2)))
    else:
        rule = RuleDraft(conditions=[row.not_empty()])
        rule.effects.append({"op": "pop", "path": row.path})
        rule.add_relief(gauge, fixed_amount(gauge, source.draw_between(1, 2)))
    return rule


def _draw_conditions(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> list[StateCondition]:
    """Return at most one condition, which holds at the start or may hold soon."""
    if source.draw_chance(45):
        return []
    guard = _draw_condition(source, world, frame)
    return [guard.or_else(_draw_condition(source, world, frame)) if source.draw_chance(20) else guard]


def _draw_condition(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> StateCondition:
    ways = [
        lambda: _since_turn(source, frame),
        lambda: source.draw_option(world.gauges).at_most_share(0.9, 0.7),
        lambda: source.draw_option(world.gauges).more_than_share(source.draw_option((0.2, 0.3, 0.5)), 0.7),
        lambda: source.draw_option(world.stocks).at_least(source.draw_between(1, 3)),
        lambda: _is_scarce(source.draw_option(world.stocks)),
    ]
    if world.flags:
        ways += [
            lambda: source.draw_option(world.flags).is_set(),
            lambda: source.draw_option(world.flags).is_clear(),
        ]
    if world.modes:
        ways.append(lambda: _mode_condition(source, source.draw_option(world.modes)))
    if world.lists:
        ways.append(lambda: source.draw_option(world.lists).at_least(2))
    return source.draw_option(ways)()


def _since_turn(source: DrawStream, frame: SpecSkeleton) -> StateCondition:
    first = source.draw_between(2, max(2, min(6, frame.horizon // 4)))
    return StateCondition(lambda: {">=": [read_path("turn"), first]}, 0.85)


def _is_scarce(stock: CounterVar) -> StateCondition:
    return stock.below(stock.start + 3)


def _mode_condition(source: DrawStream, mode: ModeVar) -> StateCondition:
    option = source.draw_option(mode.options)
    return mode.equals(option) if source.draw_chance(50) else mode.differs(option, 1 - 1 / len(mode.options))
