"""Generator of random specifications: valid, playable, of usual difficulty, and winnable if they have a goal.

They serve as test data for anything that needs many specifications. Generation needs neither a model nor
simulation. The specification of a seed and an index is the same on every machine and backend.

Start values and limits come from an analytic calibration for the wanted difficulty:

**Difficulty.** Under random play a gauge is a random walk: rules move it as often as they are chosen or
drawn. Mean and variance of the walk are known without simulation. The distance of a gauge from its limit is
the expected movement in a run, plus some standard deviations.

**Why it can be won.** The weights of all events add up to less than 1, so with some luck no event is drawn.
Let the player take the action for the goal in every turn. It has no conditions and adds at least a step, so
a target of n steps is reached in turn n. In each of these turns a gauge loses at most its drain and the
price of this action. The target is set such that every gauge still has the reserved share of its distance
then, and that n is before the deadline and the horizon. No event has set a flag. So no loss condition has
held, and the win condition requires no more than that.

**Why it can be lost.** Each gauge has an event that harms it and that nothing prevents, from some turn on.
Its distance is at most the harm of such turns if that event is drawn in most of them.

Only + - * / and the square root are used, because every machine rounds them alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.errors import InvalidArgumentError
from peripety.scenario.spec_generator.actions_and_events import write_actions, write_events
from peripety.scenario.spec_generator.rules import write_losses, write_wins
from peripety.scenario.spec_generator.state_vars import (
    MAX_INDEX,
    DrawStream,
    SpecSkeleton,
    StateVars,
    round_to_thousandths,
    write_surroundings,
)
from peripety.scenario.spec_generator.story import StoryDraft

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.scenario.spec_generator.rules import RuleDraft
    from peripety.scenario.spec_generator.state_vars import GaugeVar, GoalVar


_STORY_STREAM = "random_stories"
RESERVED_SHARE = 0.2
"""The remaining share of each gauge's distance when the goal is reached as described above."""

_MIN_GAUGE_DISTANCE = 6
_MIN_GAUGE_TURNS = 2.5
_MIN_VARIANCE = 0.25
_REACHABLE_SHARE = 0.7
_MAX_GOAL_SHARE = 0.8
_ANY = 10**6
# Spare standard deviations, and the fail rate that nearly all specifications with them exceed. One gauge
# determines the
# difficulty; the others lose more rarely.
_SPARE = ((-0.8, 0.1), (-0.4, 0.1), (0.0, 0.1), (0.4, 0.08), (0.7, 0.05), (1.0, 0.03), (1.3, 0.02))
_OTHERS_SPARE = 0.9
_MAX_SPARE = 1.7
# Steps towards a loss per turn of random play, in excess of the relief.
_PULL = (0.1, 0.2, 0.3, 0.4, 0.6)
_DRAIN_STEP = 0.05
# The time when random play reaches the goal, in horizons.
_GOAL_TIMES = (0.4, 0.6, 0.8, 1.0, 1.2)
_LATEST_EAGERNESS_FOR_DEADLINE = 0.8


@dataclass(frozen=True, slots=True)
class _RuleFrequencies:
    """Estimated frequency of each rule in a turn of random play."""

    rules: tuple[tuple[RuleDraft, float], ...]

    @classmethod
    def estimate(cls, actions: Sequence[RuleDraft], events: Sequence[RuleDraft]) -> _RuleFrequencies:
        together = sum(rule.estimate_probability for rule in actions)
        chosen = ((rule, rule.estimate_probability / together) for rule in actions)
        return cls((*chosen, *((event, _onset_frequency(event)) for event in events)))

    def frequency_of(self, wanted: RuleDraft) -> float:
        return next(rate for rule, rate in self.rules if rule is wanted)

    def random_walk_moments(self, gauge: GaugeVar) -> tuple[float, float]:
        """Return mean and variance of a gauge's steps per turn away from a loss, without its drain."""
        moves = [(rate, rule.turns * mean) for rule, rate in self.rules for mean in _mean_moves(rule, gauge)]
        mean = sum(rate * steps for rate, steps in moves)
        return mean, sum(rate * steps * steps for rate, steps in moves) - mean * mean


def calibrate(
    source: DrawStream,
    world: StateVars,
    frame: SpecSkeleton,
    actions: Sequence[RuleDraft],
    events: Sequence[RuleDraft],
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
    rates = _RuleFrequencies.estimate(actions, events)
    eagerness = source.draw_option(_GOAL_TIMES)
    turns = frame.horizon * min(1, eagerness) if frame.winnable else frame.horizon
    spare, least_fail_rate = source.draw_option(_SPARE)
    for number, gauge in enumerate(source.draw_order(world.gauges)):
        mean, variance = rates.random_walk_moments(gauge)
        gauge.drain = max(0, round((mean + source.draw_option(_PULL)) / _DRAIN_STEP) * _DRAIN_STEP)
        gauge.worst = gauge.drain + _max_harm(gauge, actions) + _max_harm(gauge, events)
        mine = spare if number == 0 else min(spare + _OTHERS_SPARE, _MAX_SPARE)
        wanted = (gauge.drain - mean) * turns + mine * sqrt(max(variance, _MIN_VARIANCE) * turns)
        reachable = _REACHABLE_SHARE * (gauge.drain + gauge.threat) * frame.horizon
        gauge.distance = int(min(max(_MIN_GAUGE_DISTANCE, _MIN_GAUGE_TURNS * gauge.worst, wanted), reachable))
        gauge.start = _start_value(source, gauge)
    if world.goal is not None:
        serving = actions[-1]
        _set_target(
            source,
            world.goal,
            _affordable_turns(world, serving),
            frame,
            rates.frequency_of(serving),
            eagerness,
        )
    return least_fail_rate


def _start_value(source: DrawStream, gauge: GaugeVar) -> float:
    """Return the start value; a gauge that loses by being low mostly has its limit at 0."""
    if gauge.sense < 0:
        return gauge.to_amount(source.draw_below(20))
    edge = 0 if source.draw_chance(60) else source.draw_between(1, 20)
    return gauge.to_amount(edge + gauge.distance)


def _affordable_turns(world: StateVars, serving: RuleDraft) -> int:
    """Return the number of consecutive turns in which every gauge tolerates the action for the goal."""
    harms = ((gauge, gauge.drain + _max_harm(gauge, [serving])) for gauge in world.gauges)
    return min(
        (int((1 - RESERVED_SHARE) * gauge.distance / harm) for gauge, harm in harms if harm > 0),
        default=_ANY,
    )


def _set_target(
    source: DrawStream,
    goal: GoalVar,
    affordable: int,
    frame: SpecSkeleton,
    rate: float,
    eagerness: float,
) -> None:
    """Set a target that random play reaches after a number of horizons, if every gauge tolerates that."""
    wanted = round(rate * frame.horizon * eagerness)
    count = max(1, min(wanted, affordable, int(_MAX_GOAL_SHARE * frame.horizon)))
    goal.target = round_to_thousandths(count * goal.step)
    if eagerness <= _LATEST_EAGERNESS_FOR_DEADLINE and source.draw_chance(40):
        goal.deadline = max(count + 1, round(_MAX_GOAL_SHARE * frame.horizon))


def _mean_moves(rule: RuleDraft, gauge: GaugeVar) -> Iterator[float]:
    return (move.mean for move in rule.moves if move.gauge is gauge)


def _onset_frequency(event: RuleDraft) -> float:
    """Return the frequency of onsets of an event per turn; an active event is not drawn."""
    rate = event.weight / 100 * event.estimate_probability
    return rate / (1 + rate * (event.turns - 1))


def _max_harm(gauge: GaugeVar, rules: Sequence[RuleDraft]) -> float:
    """Return the maximum number of steps towards a loss by one of the rules."""
    taken = (-sum(move.most for move in rule.moves if move.gauge is gauge) for rule in rules)
    return max(0, *taken)


Json = dict[str, Any]


def assemble_spec(seed: int, index: int, *, with_story: bool = False) -> Json:
    """Return the specification of a seed and an index; with a story, of version 1.1."""
    source = DrawStream(seed, index)
    frame = SpecSkeleton.draw(source)
    world = StateVars.draw(source, frame)
    actions = write_actions(source, world, frame)
    events = write_events(source, world, frame)
    story = StoryDraft.draw(DrawStream(seed, index, _STORY_STREAM), len(events)) if with_story else None
    if story:
        # The action for the goal remains the last one.
        actions = [*story.write_actions(), *actions]
        story.add_to_events(events)
    least_fail_rate = calibrate(source, world, frame, actions, events)
    spec: Json = {
        "spec_version": "1.0",
        "id": f"random_{seed}_{index}",
        "name": f"Random {seed}/{index}",
        "seed": source.draw_bits() >> 11,
        "state": world.build_state(),
        "actions": [_write_action(rule, number) for number, rule in enumerate(actions, 1)],
        "random_events": [_write_event(rule, number, source, frame) for number, rule in enumerate(events, 1)],
        "loss_conditions": write_losses(source, world, frame),
        "negativity_budget": _write_budget(world, least_fail_rate),
        **write_surroundings(source, world, frame),
    }
    wins = write_wins(source, world)
    spec = {**spec, "win_conditions": wins} if wins else spec
    return story.add_to_spec(spec, world) if story else spec


def _write_action(rule: RuleDraft, number: int) -> Json:
    named = {"id": f"act_{number}", "params": rule.params, "preconditions": rule.combine_conditions()}
    return {**named, **({"once": True} if rule.once else {}), **_write_effects(rule)}


def _write_event(rule: RuleDraft, number: int, source: DrawStream, frame: SpecSkeleton) -> Json:
    named = {"id": f"event_{number}", "weight": rule.weight / 100, "when": rule.combine_conditions()}
    lasting = {"duration": frame.format_duration(source, rule.turns)} if rule.turns > 1 else {}
    return {**named, **lasting, **_write_effects(rule)}


def _write_effects(rule: RuleDraft) -> Json:
    return {"effects": rule.effects, "derives": rule.derives} if rule.derives else {"effects": rule.effects}


def _write_budget(world: StateVars, least_fail_rate: float) -> Json:
    decay = {
        gauge.path: gauge.sense * gauge.to_amount(gauge.drain) for gauge in world.gauges if gauge.drain > 0
    }
    return {"min_fail_rate": least_fail_rate, "decay_per_turn": decay}


def generate_spec(seed: int, index: int, *, with_story: bool = False) -> bytes:
    """Return a specification as canonical JSON.

    Args:
        seed: an unsigned 64-bit integer.
        index: the number of the specification under this seed, up to `MAX_INDEX`.
        with_story: True for version 1.1 with bounds, a deal, parameters in paths, places, clues, a statement
            and a promise.

    Raises:
        InvalidArgumentError: an argument is out of range.
    """
    if not 0 <= index <= MAX_INDEX:
        raise InvalidArgumentError(f"index must be an integer, 0 … {MAX_INDEX}, not {index}")
    return engine.canonicalize(assemble_spec(seed, index, with_story=with_story))
