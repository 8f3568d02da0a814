"""Amounts of changes in a random specification: fixed, or dependent on the state or a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.scenarios.random_specs.rules import Amount
from peripety.scenarios.random_specs.world import var

if TYPE_CHECKING:
    from peripety.scenarios.random_specs.rules import Rule
    from peripety.scenarios.random_specs.source import Source
    from peripety.scenarios.random_specs.world import Flag, Gauge, Mode, Stock, World

__all__ = ["fixed", "variable"]

Json = dict[str, Any]

_DEPENDING = 35
"""The percentage of amounts that are not fixed."""


def fixed(gauge: Gauge, steps: int) -> Amount:
    """Return a fixed number of steps."""
    return Amount(steps, steps, gauge.steps(steps))


def variable(
    source: Source, world: World, rule: Rule, gauge: Gauge, steps: int, *, params: bool = False
) -> Amount:
    """Return about a number of steps, possibly dependent on the state.

    Args:
        source: the random draws.
        world: the state variables.
        rule: the rule of the effect; it gets the derived value.
        gauge: the changed gauge.
        steps: 1 or more.
        params: True if the amount may depend on a parameter, which is then added to the rule.
    """
    if not source.chance(_DEPENDING):
        return fixed(gauge, steps)
    ways = [
        lambda: _by_stock(rule, gauge, steps, source.pick(world.stocks)),
        lambda: _by_turn(rule, gauge, steps, source.between(2, 4)),
    ]
    if world.flags:
        ways.append(lambda: _by_flag(rule, gauge, steps, source.pick(world.flags)))
    if world.modes:
        ways.append(lambda: _by_mode(rule, gauge, steps, source.pick(world.modes)))
    if params and not rule.params:
        ways += [
            lambda: _by_boolean(rule, gauge, steps),
            lambda: _by_share(rule, gauge, steps, source),
        ]
        if not rule.guards:  # its price may be of the same stock
            ways.append(lambda: _by_count(rule, gauge, steps, source.pick(world.stocks)))
    return source.pick(ways)()


def _by_stock(rule: Rule, gauge: Gauge, steps: int, stock: Stock) -> Amount:
    """Return an amount proportional to a stock, within bounds."""
    grown = {"*": [var(stock.path), gauge.steps(steps / stock.start)]}
    expression = {"max": [gauge.steps(steps / 2), {"min": [grown, gauge.steps(1.5 * steps)]}]}
    return Amount(steps, 1.5 * steps, rule.derive("amount", expression))


def _by_turn(rule: Rule, gauge: Gauge, steps: int, cycle: int) -> Amount:
    """Return an amount that grows for some turns and then starts again."""
    more = {"*": [{"%": [var("turn"), cycle]}, gauge.steps(1)]}
    expression = {"+": [gauge.steps(steps), more]}
    return Amount(steps + (cycle - 1) / 2, steps + cycle - 1, rule.derive("amount", expression))


def _by_flag(rule: Rule, gauge: Gauge, steps: int, flag: Flag) -> Amount:
    """Return an amount that is larger while a flag is set."""
    expression = {"if": [var(flag.path), gauge.steps(2 * steps), gauge.steps(steps)]}
    return Amount(1.4 * steps, 2 * steps, rule.derive("amount", expression))


def _by_mode(rule: Rule, gauge: Gauge, steps: int, mode: Mode) -> Amount:
    """Return an amount with one more step for each option of a mode."""
    last = len(mode.options) - 1
    choices: list[Any] = []
    for more, option in enumerate(mode.options[:last]):
        choices += [{"==": [var(mode.path), option]}, gauge.steps(steps + more)]
    expression = {"if": [*choices, gauge.steps(steps + last)]}
    return Amount(steps + last / 2, steps + last, rule.derive("amount", expression))


def _by_boolean(rule: Rule, gauge: Gauge, steps: int) -> Amount:
    rule.params["more"] = {"type": "boolean"}
    expression = {"if": [var("params.more"), gauge.steps(2 * steps), gauge.steps(steps)]}
    return Amount(1.5 * steps, 2 * steps, rule.derive("amount", expression))


def _by_share(rule: Rule, gauge: Gauge, steps: int, source: Source) -> Amount:
    bounds = {"minimum": 0.5, "maximum": 1.5} if source.chance(50) else {"enum": [0.5, 1, 1.5]}
    rule.params["share"] = {"type": "number", **bounds}
    expression = {"*": [var("params.share"), gauge.steps(steps)]}
    return Amount(steps, 1.5 * steps, rule.derive("amount", expression))


def _by_count(rule: Rule, gauge: Gauge, steps: int, stock: Stock) -> Amount:
    """Return an amount equal to the units of a stock that the player spends."""
    rule.params["count"] = {"type": "integer", "minimum": 1, "maximum": 3}
    rule.spend(stock, var("params.count"))
    expression = {"*": [var("params.count"), gauge.steps(steps / 2)]}
    return Amount(steps, 1.5 * steps, rule.derive("amount", expression))
