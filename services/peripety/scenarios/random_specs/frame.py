"""Skeleton of a random specification: its size and length, and everything besides state and rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peripety.scenarios.random_specs.source import Source
    from peripety.scenarios.random_specs.world import World

__all__ = ["Frame", "write_surroundings"]

Json = dict[str, Any]

_SIZES = 10
_DEFAULT_HORIZON = 50
_HORIZONS = (10, 12, 15, 15, 20, 20, 25, 30, 40, _DEFAULT_HORIZON, 60, 80)
_CLOCKS = (("1h", 1), ("2h", 2), ("6h", 6), ("PT12H", 12), ("1d", 24), ("P1D", 24), ("P1W", 168))
_DAY = 24


@dataclass(frozen=True, slots=True)
class Frame:
    """Skeleton of a specification, chosen first.

    Attributes:
        size: 0 … 9; small sizes are more frequent.
        horizon: the maximum number of turns of a run.
        clock: the duration of a turn, as written; None for the engine's default of an hour.
        hours: the duration of a turn, in hours.
        winnable: True if there is a goal.
    """

    size: int
    horizon: int
    clock: str | None
    hours: int
    winnable: bool

    @classmethod
    def chosen(cls, source: Source) -> Frame:
        """Draw a skeleton."""
        size = min(source.below(_SIZES), source.below(_SIZES))
        clock, hours = source.pick(_CLOCKS) if source.chance(60) else (None, 1)
        return cls(size, source.pick(_HORIZONS), clock, hours, source.chance(50))

    def span(self, source: Source, turns: int) -> str:
        """Return a number of turns as a duration."""
        hours = turns * self.hours
        if hours % _DAY == 0:
            return f"{hours // _DAY}d" if source.chance(50) else f"P{hours // _DAY}D"
        return f"{hours}h" if source.chance(50) else f"PT{hours}H"

    def delay(self, source: Source, turns: int) -> int | str:
        """Return a number of turns, as a number or as a duration."""
        return turns if source.chance(50) else self.span(source, turns)


def write_surroundings(source: Source, world: World, frame: Frame) -> Json:
    """Return entities, clock, horizon and permissions; each of them is sometimes omitted."""
    written: Json = {}
    private = any(".private." in path for path in world.paths())
    if private or source.chance(60):
        written["entities"] = _entities(source)
    if frame.clock is not None:
        written["clock"] = {"turn": frame.clock}
    if frame.horizon != _DEFAULT_HORIZON or source.chance(50):
        written["horizon"] = frame.horizon
    if "entities" in written and source.chance(40):
        written["visibility"] = _visibility(source, world)
    if source.chance(40):
        written["narrator_scope"] = _narrator_scope(source, world)
    return written


def _entities(source: Source) -> list[Json]:
    others = range(2, source.between(2, 4))
    return [
        {"id": "entity_1", "name": "Entity 1", "playable": True},
        *({"id": f"entity_{number}", "kind": f"kind_{source.between(1, 3)}"} for number in others),
    ]


def _visibility(source: Source, world: World) -> list[Json]:
    audience = source.pick(("public", "hidden", ["entity_1"]))
    return [{"path": source.pick(world.gauges).path, "to": audience}]


def _narrator_scope(source: Source, world: World) -> list[Json]:
    gauge = source.pick(world.gauges)
    written: list[Json] = [{"path": gauge.path, "ops": ["inc", "dec"], "max_magnitude": gauge.steps(1)}]
    return written + [{"path": flag.path, "ops": ["set"]} for flag in world.flags[:1]]
