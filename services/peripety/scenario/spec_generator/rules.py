"""Rules of a random specification under construction: amounts, effects, conditions and endings.

Amounts are fixed, or depend on the state or a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.scenario.spec_generator.state_vars import read_path, round_to_thousandths

if TYPE_CHECKING:
    from peripety.scenario.spec_generator.state_vars import (
        CounterVar,
        DrawStream,
        FlagVar,
        GaugeVar,
        GoalVar,
        ModeVar,
        SpecSkeleton,
        StateCondition,
        StateVars,
    )


@dataclass(frozen=True, slots=True)
class StepAmount:
    """Amount of a change, in steps.

    Attributes:
        mean: the estimated mean.
        most: the maximum.
        value: the value of the effect: a number, or the name of a derived value.
    """

    mean: float
    most: float
    value: Any


@dataclass(frozen=True, slots=True)
class StepMove:
    """Change of a gauge by a rule: steps away from a loss, negative towards it."""

    gauge: GaugeVar
    mean: float
    most: float


@dataclass(slots=True)
class RuleDraft:
    """Action or event under construction.

    Attributes:
        moves: its changes of gauges.
        weight: for an event: its chance per turn, in hundredths.
        turns: for an event: its duration in turns.
        likely: the estimated probability that what its effects need holds.
        once: True if it happens at most once.
    """

    effects: list[Json] = field(default_factory=list)
    params: dict[str, Json] = field(default_factory=dict)
    derives: dict[str, Any] = field(default_factory=dict)
    conditions: list[StateCondition] = field(default_factory=list)
    moves: list[StepMove] = field(default_factory=list)
    weight: int = 0
    turns: int = 1
    likely: float = 1.0
    once: bool = False

    @property
    def estimate_probability(self) -> float:
        """Estimate the probability that its conditions hold."""
        product = self.likely
        for guard in self.conditions:
            product *= guard.probability
        return product

    def combine_conditions(self) -> Json:
        """Return its conditions as one expression."""
        terms = [guard.logic() for guard in self.conditions]
        return {} if not terms else terms[0] if len(terms) == 1 else {"and": terms}

    def add_derived(self, kind: str, expression: Any) -> str:
        """Add a derived value; return its name."""
        name = f"{kind}_{len(self.derives) + 1}"
        self.derives[name] = expression
        return name

    def add_increase(self, path: str, amount: Any) -> None:
        """Add an effect that increases a number."""
        self.effects.append({"op": "inc", "path": path, "value": amount})

    def add_relief(self, gauge: GaugeVar, amount: StepAmount) -> None:
        """Add an effect that moves a gauge away from a loss."""
        self.moves.append(StepMove(gauge, amount.mean, amount.most))
        self._add_move(gauge, amount, "inc" if gauge.sense > 0 else "dec")

    def add_harm(self, gauge: GaugeVar, amount: StepAmount) -> None:
        """Add an effect that moves a gauge towards a loss."""
        self.moves.append(StepMove(gauge, -amount.mean, -amount.most))
        self._add_move(gauge, amount, "dec" if gauge.sense > 0 else "inc")

    def _add_move(self, gauge: GaugeVar, amount: StepAmount, op: str) -> None:
        self.effects.append({"op": op, "path": gauge.path, "value": amount.value})

    def delay_last(self, name: str, after: int | str) -> None:
        """Schedule the last effect for later."""
        self.effects[-1] = {"op": "schedule", "id": name, "after": after, "effects": [self.effects[-1]]}

    def add_price(self, stock: CounterVar, amount: Any) -> None:
        """Add a price from a stock, with its precondition; an expression becomes a derived value."""
        self.conditions.append(stock.at_least(amount))
        value = amount if isinstance(amount, int) else self.add_derived("cost", amount)
        self.effects.append({"op": "dec", "path": stock.path, "value": value})


Json = dict[str, Any]

_DEPENDENT_PERCENT = 35
"""The percentage of amounts that are not fixed."""


def fixed_amount(gauge: GaugeVar, steps: int) -> StepAmount:
    """Return a fixed number of steps."""
    return StepAmount(steps, steps, gauge.to_amount(steps))


def variable_amount(
    source: DrawStream,
    world: StateVars,
    rule: RuleDraft,
    gauge: GaugeVar,
    steps: int,
    *,
    params: bool = False,
) -> StepAmount:
    """Return about a number of steps, possibly dependent on the state.

    Args:
        source: the random draws.
        world: the state variables.
        rule: the rule of the effect; it gets the derived value.
        gauge: the changed gauge.
        steps: 1 or more.
        params: True if the amount may depend on a parameter, which is then added to the rule.
    """
    if not source.draw_chance(_DEPENDENT_PERCENT):
        return fixed_amount(gauge, steps)
    ways = [
        lambda: _amount_by_stock(rule, gauge, steps, source.draw_option(world.stocks)),
        lambda: _amount_by_turn(rule, gauge, steps, source.draw_between(2, 4)),
    ]
    if world.flags:
        ways.append(lambda: _amount_by_flag(rule, gauge, steps, source.draw_option(world.flags)))
    if world.modes:
        ways.append(lambda: _amount_by_mode(rule, gauge, steps, source.draw_option(world.modes)))
    if params and not rule.params:
        ways += [
            lambda: _amount_by_boolean(rule, gauge, steps),
            lambda: _amount_by_share(rule, gauge, steps, source),
        ]
        if not rule.conditions:  # its price may be of the same stock
            ways.append(lambda: _amount_by_count(rule, gauge, steps, source.draw_option(world.stocks)))
    return source.draw_option(ways)()


def _amount_by_stock(rule: RuleDraft, gauge: GaugeVar, steps: int, stock: CounterVar) -> StepAmount:
    """Return an amount proportional to a stock, within bounds."""
    grown = {"*": [read_path(stock.path), gauge.to_amount(steps / stock.start)]}
    expression = {"max": [gauge.to_amount(steps / 2), {"min": [grown, gauge.to_amount(1.5 * steps)]}]}
    return StepAmount(steps, 1.5 * steps, rule.add_derived("amount", expression))


def _amount_by_turn(rule: RuleDraft, gauge: GaugeVar, steps: int, cycle: int) -> StepAmount:
    """Return an amount that grows for some turns and then starts again."""
    more = {"*": [{"%": [read_path("turn"), cycle]}, gauge.to_amount(1)]}
    expression = {"+": [gauge.to_amount(steps), more]}
    return StepAmount(steps + (cycle - 1) / 2, steps + cycle - 1, rule.add_derived("amount", expression))


def _amount_by_flag(rule: RuleDraft, gauge: GaugeVar, steps: int, flag: FlagVar) -> StepAmount:
    """Return an amount that is larger while a flag is set."""
    expression = {"if": [read_path(flag.path), gauge.to_amount(2 * steps), gauge.to_amount(steps)]}
    return StepAmount(1.4 * steps, 2 * steps, rule.add_derived("amount", expression))


def _amount_by_mode(rule: RuleDraft, gauge: GaugeVar, steps: int, mode: ModeVar) -> StepAmount:
    """Return an amount with one more step for each option of a mode."""
    last = len(mode.options) - 1
    choices: list[Any] = []
    for more, option in enumerate(mode.options[:last]):
        choices += [{"==": [read_path(mode.path), option]}, gauge.to_amount(steps + more)]
    expression = {"if": [*choices, gauge.to_amount(steps + last)]}
    return StepAmount(steps + last / 2, steps + last, rule.add_derived("amount", expression))


def _amount_by_boolean(rule: RuleDraft, gauge: GaugeVar, steps: int) -> StepAmount:
    rule.params["more"] = {"type": "boolean"}
    expression = {"if": [read_path("params.more"), gauge.to_amount(2 * steps), gauge.to_amount(steps)]}
    return StepAmount(1.5 * steps, 2 * steps, rule.add_derived("amount", expression))


def _amount_by_share(rule: RuleDraft, gauge: GaugeVar, steps: int, source: DrawStream) -> StepAmount:
    bounds = {"minimum": 0.5, "maximum": 1.5} if source.draw_chance(50) else {"enum": [0.5, 1, 1.5]}
    rule.params["share"] = {"type": "number", **bounds}
    expression = {"*": [read_path("params.share"), gauge.to_amount(steps)]}
    return StepAmount(steps, 1.5 * steps, rule.add_derived("amount", expression))


def _amount_by_count(rule: RuleDraft, gauge: GaugeVar, steps: int, stock: CounterVar) -> StepAmount:
    """Return an amount equal to the units of a stock that the player spends."""
    rule.params["count"] = {"type": "integer", "minimum": 1, "maximum": 3}
    rule.add_price(stock, read_path("params.count"))
    expression = {"*": [read_path("params.count"), gauge.to_amount(steps / 2)]}
    return StepAmount(steps, 1.5 * steps, rule.add_derived("amount", expression))


_REMAINING_SHARE = 0.15
"""The remaining share of a distance in loss conditions on more than one gauge."""

_MIN_DISTANCE = 20
"""The minimum distance for which that share exceeds the change of one turn."""


def write_losses(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> list[Json]:
    """Return loss conditions: every gauge at its limit, and some states that are nearly as bad.

    No condition holds while each gauge has the reserved share of its distance left, no event has set a flag,
    and the goal is reached by the deadline.
    """
    conditions = [gauge.at_most_share(0, 1).logic() for gauge in world.gauges]
    roomy = [gauge for gauge in world.gauges if gauge.distance >= _MIN_DISTANCE]
    if len(roomy) > 1 and source.draw_chance(60):
        conditions.append(_late_loss(roomy[0], roomy[1], frame.horizon))
    low = [gauge for gauge in world.gauges if gauge.sense > 0]
    if len(low) > 1 and source.draw_chance(50):
        conditions.append(_joint_loss(low[0], low[1]))
    raised = [flag for flag in world.flags if flag.by_events]
    if raised and source.draw_chance(50):
        conditions.append(_flagged_loss(raised[0], source.draw_option(world.gauges)))
    if world.goal is not None and world.goal.deadline is not None:
        conditions.append(_missed_goal_loss(world.goal, world.goal.deadline))
    return [_write_ending(source, "loss", number, when) for number, when in enumerate(conditions, 1)]


def write_wins(source: DrawStream, world: StateVars) -> list[Json]:
    """Return win conditions: the goal is reached, sometimes only while a gauge is high enough."""
    if world.goal is None:
        return []
    reached: Json = {">=": [read_path(world.goal.path), world.goal.target]}
    if source.draw_chance(30):
        reached = {
            "and": [reached, source.draw_option(world.gauges).more_than_share(_REMAINING_SHARE, 1).logic()],
        }
    return [_write_ending(source, "win", 1, reached)]


def _write_ending(source: DrawStream, kind: str, number: int, when: Json) -> Json:
    ending: Json = {"id": f"{kind}_{number}", "when": when}
    if source.draw_chance(50):
        ending["message"] = f"The run ends by {kind} {number}."
    return ending


def _late_loss(one: GaugeVar, other: GaugeVar, horizon: int) -> Json:
    """Return a loss condition on two gauges in the second half of a run."""
    parts = (
        one.at_most_share(_REMAINING_SHARE, 1).logic(),
        other.at_most_share(2 * _REMAINING_SHARE, 1).logic(),
    )
    return {"and": [{">": [read_path("turn"), horizon // 2]}, *parts]}


def _joint_loss(one: GaugeVar, other: GaugeVar) -> Json:
    """Return a loss condition on two gauges that are low at the same time."""
    limit = round_to_thousandths(one.value_at(_REMAINING_SHARE) + other.value_at(_REMAINING_SHARE))
    return {"<": [{"+": [read_path(one.path), read_path(other.path)]}, limit]}


def _flagged_loss(flag: FlagVar, gauge: GaugeVar) -> Json:
    """Return a loss condition on a gauge while a flag is set by events."""
    return {"and": [read_path(flag.path), gauge.at_most_share(2 * _REMAINING_SHARE, 1).logic()]}


def _missed_goal_loss(goal: GoalVar, deadline: int) -> Json:
    """Return a loss condition on the goal at the deadline."""
    return {"and": [{">=": [read_path("turn"), deadline]}, {"<": [read_path(goal.path), goal.target]}]}
