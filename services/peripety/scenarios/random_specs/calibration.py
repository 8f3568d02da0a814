"""Where a random specification begins and ends, so that it is about as hard as wanted and can be won.

**How hard.** Under random play a gauge walks: it moves by what the rules do, as often as they are chosen or
drawn. Of such a walk mean and variance are known without playing it. A gauge starts as far from its edge as
it is expected to move towards it within a run, and some standard deviations more or less.

**Why it can be won.** The weights of all events together are below 1, so with some luck none is drawn. Let
then the action that serves the goal be taken in every turn. Nothing guards it, and it adds at least a step,
so a target of n steps is reached in turn n. Each of these turns takes no more from a gauge than its drain and
what this action takes. The target is set such that until then every gauge keeps a share of `KEPT` of its
distance, and that n is before the deadline and the horizon; nor has an event set a flag. So no loss condition
has held (`endings.write_losses`), and the win condition asks for no more than that (`endings.write_wins`).

**Why it can be lost.** Each gauge is harmed by an event that nothing prevents, after some turns at most, and
none is farther from its edge than what such turns take of it if that event is drawn in most of them.

Only + - * / and the square root are used here, which every machine rounds alike.
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
"""The share of its distance that each gauge has left when the goal is reached in the way told above."""

_LEAST_DISTANCE = 6
_LEAST_TURNS = 2.5
_LEAST_VARIANCE = 0.25
_REACHABLE = 0.7
_LONGEST_SERVICE = 0.8
_ANY = 10**6
# Standard deviations to spare, and the fail rate that nearly all specifications with them exceed. One gauge
# decides how hard a specification is; the others lose more rarely.
_SPARE = ((-0.8, 0.1), (-0.4, 0.1), (0.0, 0.1), (0.4, 0.08), (0.7, 0.05), (1.0, 0.03), (1.3, 0.02))
_OTHERS_SPARE = 0.9
_MOST_SPARE = 1.7
# Steps towards losing that a gauge takes in a turn of random play, more than it is relieved by.
_PULL = (0.1, 0.2, 0.3, 0.4, 0.6)
_DRAIN_STEP = 0.05
# When random play reaches the goal, in horizons.
_EAGERNESS = (0.4, 0.6, 0.8, 1.0, 1.2)
_LATEST_EAGERNESS_FOR_DEADLINE = 0.8


@dataclass(frozen=True, slots=True)
class _Rates:
    """How often rules apply their effects in a turn of random play, as a guess."""

    rules: tuple[tuple[Rule, float], ...]

    @classmethod
    def of(cls, actions: Sequence[Rule], events: Sequence[Rule]) -> _Rates:
        together = sum(rule.likely for rule in actions)
        chosen = ((rule, rule.likely / together) for rule in actions)
        return cls((*chosen, *((event, _onsets(event)) for event in events)))

    def of_rule(self, wanted: Rule) -> float:
        return next(rate for rule, rate in self.rules if rule is wanted)

    def walk(self, gauge: Gauge) -> tuple[float, float]:
        """Mean and variance of a gauge's turn in steps away from losing, its drain not included."""
        moves = [(rate, rule.turns * mean) for rule, rate in self.rules for mean in _means(rule, gauge)]
        mean = sum(rate * steps for rate, steps in moves)
        return mean, sum(rate * steps * steps for rate, steps in moves) - mean * mean


def settle(
    source: Source, world: World, frame: Frame, actions: Sequence[Rule], events: Sequence[Rule]
) -> float:
    """Choose drain, start and edge of every gauge, and what the goal asks for.

    Args:
        source: where choices come from.
        world: is given its numbers.
        frame: how long a run is.
        actions: the last one serves the goal, if there is one.
        events: what may happen.

    Returns:
        the fail rate to ask for.
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
    """Where a gauge starts: one that loses by being low mostly has its edge at 0."""
    if gauge.sense < 0:
        return gauge.steps(source.below(20))
    edge = 0 if source.chance(60) else source.between(1, 20)
    return gauge.steps(edge + gauge.distance)


def _affordable(world: World, serving: Rule) -> int:
    """How many turns in a row every gauge can stand the action that serves the goal."""
    harms = ((gauge, gauge.drain + _worst(gauge, [serving])) for gauge in world.gauges)
    return min((int((1 - KEPT) * gauge.distance / harm) for gauge, harm in harms if harm > 0), default=_ANY)


def _aim(source: Source, goal: Goal, affordable: int, frame: Frame, rate: float, eagerness: float) -> None:
    """Set a target that random play reaches after so many horizons, if all can stand that."""
    wanted = round(rate * frame.horizon * eagerness)
    count = max(1, min(wanted, affordable, int(_LONGEST_SERVICE * frame.horizon)))
    goal.target = tidy(count * goal.step)
    if eagerness <= _LATEST_EAGERNESS_FOR_DEADLINE and source.chance(40):
        goal.deadline = max(count + 1, round(_LONGEST_SERVICE * frame.horizon))


def _means(rule: Rule, gauge: Gauge) -> Iterator[float]:
    return (move.mean for move in rule.moves if move.gauge is gauge)


def _onsets(event: Rule) -> float:
    """How often an event begins in a turn; while it lasts it is not drawn."""
    rate = event.weight / 100 * event.likely
    return rate / (1 + rate * (event.turns - 1))


def _worst(gauge: Gauge, rules: Sequence[Rule]) -> float:
    """Most steps that one of the rules takes a gauge towards losing."""
    taken = (-sum(move.most for move in rule.moves if move.gauge is gauge) for rule in rules)
    return max(0, *taken)
