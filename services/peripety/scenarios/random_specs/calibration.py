"""Analytic calibration of a random specification: start values and limits for the wanted difficulty.

**Difficulty.** Under random play a gauge is a random walk: rules move it as often as they are chosen or
drawn. Mean and variance of the walk are known without simulation. The distance of a gauge from its limit is
the expected movement in a run, plus some standard deviations.

**Why it can be won.** The weights of all events add up to less than 1, so with some luck no event is drawn.
Let the player take the action for the goal in every turn. It has no conditions and adds at least a step, so a
target of n steps is reached in turn n. In each of these turns a gauge loses at most its drain and the price
of this action. The target is set such that every gauge still has the reserved share of its distance then, and
that n is before the deadline and the horizon. No event has set a flag. So no loss condition has held, and the
win condition requires no more than that.

**Why it can be lost.** Each gauge has an event that harms it and that nothing prevents, from some turn on.
Its distance is at most the harm of such turns if that event is drawn in most of them.

Only + - * / and the square root are used, because every machine rounds them alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from peripety.scenarios.random_specs.world import tidy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.scenarios.random_specs.frame import Frame
    from peripety.scenarios.random_specs.rules import Rule
    from peripety.scenarios.random_specs.source import Source
    from peripety.scenarios.random_specs.world import Gauge, Goal, World

__all__ = ["KEPT", "settle"]

KEPT = 0.2
"""The remaining share of each gauge's distance when the goal is reached as described above."""

_LEAST_DISTANCE = 6
_LEAST_TURNS = 2.5
_LEAST_VARIANCE = 0.25
_REACHABLE = 0.7
_LONGEST_SERVICE = 0.8
_ANY = 10**6
# Spare standard deviations, and the fail rate that nearly all specifications with them exceed. One gauge
# determines the
# difficulty; the others lose more rarely.
_SPARE = ((-0.8, 0.1), (-0.4, 0.1), (0.0, 0.1), (0.4, 0.08), (0.7, 0.05), (1.0, 0.03), (1.3, 0.02))
_OTHERS_SPARE = 0.9
_MOST_SPARE = 1.7
# Steps towards a loss per turn of random play, in excess of the relief.
_PULL = (0.1, 0.2, 0.3, 0.4, 0.6)
_DRAIN_STEP = 0.05
# The time when random play reaches the goal, in horizons.
_EAGERNESS = (0.4, 0.6, 0.8, 1.0, 1.2)
_LATEST_EAGERNESS_FOR_DEADLINE = 0.8


@dataclass(frozen=True, slots=True)
class _Rates:
    """Estimated frequency of each rule in a turn of random play."""

    rules: tuple[tuple[Rule, float], ...]

    @classmethod
    def of(cls, actions: Sequence[Rule], events: Sequence[Rule]) -> _Rates:
        together = sum(rule.likely for rule in actions)
        chosen = ((rule, rule.likely / together) for rule in actions)
        return cls((*chosen, *((event, _onsets(event)) for event in events)))

    def of_rule(self, wanted: Rule) -> float:
        return next(rate for rule, rate in self.rules if rule is wanted)

    def walk(self, gauge: Gauge) -> tuple[float, float]:
        """Return mean and variance of a gauge's steps per turn away from a loss, without its drain."""
        moves = [(rate, rule.turns * mean) for rule, rate in self.rules for mean in _means(rule, gauge)]
        mean = sum(rate * steps for rate, steps in moves)
        return mean, sum(rate * steps * steps for rate, steps in moves) - mean * mean


def settle(
    source: Source, world: World, frame: Frame, actions: Sequence[Rule], events: Sequence[Rule]
) -> float:
    """Choose drain, start and limit of every gauge, and the target of the goal.

    Args:
        source: the random draws.
        world: the state variables, which get their numbers.
        frame: the length of a run.
        actions: the actions; the last one is for the goal, if there is one.
        events: the random events.

    Returns:
        The minimum fail rate of the budget.
    """
    rates = _Rates.of(actions, events)
    eagerness = source.pick(_EAGERNESS)
    turns = frame.horizon * min(1, eagerness) if frame.winnable else frame.horizon
    spare, least_fail_rate = source.pick(_SPARE)
    for number, gauge in enumerate(source.shuffled(world.gauges)):
        mean, variance = rates.walk(gauge)
        gauge.drain = max(0, round((mean + source.pick(_PULL)) / _DRAIN_STEP) * _DRAIN_STEP)
        gauge.worst = gauge.drain + _worst(gauge, actions) + _worst(gauge, events)
        mine = spare if number == 0 else min(spare + _OTHERS_SPARE, _MOST_SPARE)
        wanted = (gauge.drain - mean) * turns + mine * sqrt(max(variance, _LEAST_VARIANCE) * turns)
        reachable = _REACHABLE * (gauge.drain + gauge.threat) * frame.horizon
        gauge.distance = int(min(max(_LEAST_DISTANCE, _LEAST_TURNS * gauge.worst, wanted), reachable))
        gauge.start = _start(source, gauge)
    if world.goal is not None:
        serving = actions[-1]
        _aim(source, world.goal, _affordable(world, serving), frame, rates.of_rule(serving), eagerness)
    return least_fail_rate


def _start(source: Source, gauge: Gauge) -> float:
    """Return the start value; a gauge that loses by being low mostly has its limit at 0."""
    if gauge.sense < 0:
        return gauge.steps(source.below(20))
    edge = 0 if source.chance(60) else source.between(1, 20)
    return gauge.steps(edge + gauge.distance)


def _affordable(world: World, serving: Rule) -> int:
    """Return the number of consecutive turns in which every gauge tolerates the action for the goal."""
    harms = ((gauge, gauge.drain + _worst(gauge, [serving])) for gauge in world.gauges)
    return min((int((1 - KEPT) * gauge.distance / harm) for gauge, harm in harms if harm > 0), default=_ANY)


def _aim(source: Source, goal: Goal, affordable: int, frame: Frame, rate: float, eagerness: float) -> None:
    """Set a target that random play reaches after a number of horizons, if every gauge tolerates that."""
    wanted = round(rate * frame.horizon * eagerness)
    count = max(1, min(wanted, affordable, int(_LONGEST_SERVICE * frame.horizon)))
    goal.target = tidy(count * goal.step)
    if eagerness <= _LATEST_EAGERNESS_FOR_DEADLINE and source.chance(40):
        goal.deadline = max(count + 1, round(_LONGEST_SERVICE * frame.horizon))


def _means(rule: Rule, gauge: Gauge) -> Iterator[float]:
    return (move.mean for move in rule.moves if move.gauge is gauge)


def _onsets(event: Rule) -> float:
    """Return the frequency of onsets of an event per turn; an active event is not drawn."""
    rate = event.weight / 100 * event.likely
    return rate / (1 + rate * (event.turns - 1))


def _worst(gauge: Gauge, rules: Sequence[Rule]) -> float:
    """Return the maximum number of steps towards a loss by one of the rules."""
    taken = (-sum(move.most for move in rule.moves if move.gauge is gauge) for rule in rules)
    return max(0, *taken)
