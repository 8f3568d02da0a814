"""Loss and win conditions of a random specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.scenarios.random_specs.world import tidy, var

if TYPE_CHECKING:
    from peripety.scenarios.random_specs.frame import Frame
    from peripety.scenarios.random_specs.source import Source
    from peripety.scenarios.random_specs.world import Flag, Gauge, Goal, World

__all__ = ["write_losses", "write_wins"]

Json = dict[str, Any]

_MARGIN = 0.15
"""The remaining share of a distance in loss conditions on more than one gauge."""

_ROOMY = 20
"""The minimum distance for which that share exceeds the change of one turn."""


def write_losses(source: Source, world: World, frame: Frame) -> list[Json]:
    """Return loss conditions: every gauge at its limit, and some states that are nearly as bad.

    No condition holds while each gauge has the reserved share of its distance left, no event has set a flag,
    and the goal is reached by the deadline.
    """
    conditions = [gauge.within(0, 1).logic() for gauge in world.gauges]
    roomy = [gauge for gauge in world.gauges if gauge.distance >= _ROOMY]
    if len(roomy) > 1 and source.chance(60):
        conditions.append(_late(roomy[0], roomy[1], frame.horizon))
    low = [gauge for gauge in world.gauges if gauge.sense > 0]
    if len(low) > 1 and source.chance(50):
        conditions.append(_together(low[0], low[1]))
    raised = [flag for flag in world.flags if flag.by_events]
    if raised and source.chance(50):
        conditions.append(_exposed(raised[0], source.pick(world.gauges)))
    if world.goal is not None and world.goal.deadline is not None:
        conditions.append(_missed(world.goal, world.goal.deadline))
    return [_ending(source, "loss", number, when) for number, when in enumerate(conditions, 1)]


def write_wins(source: Source, world: World) -> list[Json]:
    """Return win conditions: the goal is reached, sometimes only while a gauge is high enough."""
    if world.goal is None:
        return []
    reached: Json = {">=": [var(world.goal.path), world.goal.target]}
    if source.chance(30):
        reached = {"and": [reached, source.pick(world.gauges).beyond(_MARGIN, 1).logic()]}
    return [_ending(source, "win", 1, reached)]


def _ending(source: Source, kind: str, number: int, when: Json) -> Json:
    ending: Json = {"id": f"{kind}_{number}", "when": when}
    if source.chance(50):
        ending["message"] = f"The run ends by {kind} {number}."
    return ending


def _late(one: Gauge, other: Gauge, horizon: int) -> Json:
    """Return a loss condition on two gauges in the second half of a run."""
    parts = (one.within(_MARGIN, 1).logic(), other.within(2 * _MARGIN, 1).logic())
    return {"and": [{">": [var("turn"), horizon // 2]}, *parts]}


def _together(one: Gauge, other: Gauge) -> Json:
    """Return a loss condition on two gauges that are low at the same time."""
    limit = tidy(one.level(_MARGIN) + other.level(_MARGIN))
    return {"<": [{"+": [var(one.path), var(other.path)]}, limit]}


def _exposed(flag: Flag, gauge: Gauge) -> Json:
    """Return a loss condition on a gauge while a flag is set by events."""
    return {"and": [var(flag.path), gauge.within(2 * _MARGIN, 1).logic()]}


def _missed(goal: Goal, deadline: int) -> Json:
    """Return a loss condition on the goal at the deadline."""
    return {"and": [{">=": [var("turn"), deadline]}, {"<": [var(goal.path), goal.target]}]}
