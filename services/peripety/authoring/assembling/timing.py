"""Time scale of a scenario: time spans are converted to turns of a round length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.authoring.blueprint import Blueprint

__all__ = ["Timing", "timing"]

_FEWEST, _MOST, _USUAL = 14, 30, 20
_OPEN = (18, 20, 24)
_EARLIEST_DUE = 5
_LEFT_AFTER_DUE = 4
_MINUTES = 60
_HOUR, _DAY = 60, 24 * 60
_LENGTHS = (
    *(1, 2, 5, 10, 15, 20, 30),
    *(hours * _HOUR for hours in (1, 2, 3, 4, 6, 8, 12)),
    *(days * _DAY for days in (1, 2, 3, 4, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365, 730, 1_825, 3_650)),
)


@dataclass(frozen=True, slots=True)
class Timing:
    """Turn length and number of turns.

    Attributes:
        minutes: minutes per turn; 0 if unspecified.
        horizon: the number of turns.
        due: the turn of the deadline; 0 for none.
    """

    minutes: int
    horizon: int
    due: int

    def duration(self, turns: int) -> str:
        """Return the duration of a number of turns, as the specification writes it."""
        return _duration(turns * (self.minutes or _HOUR))


def timing(blueprint: Blueprint, choice: int) -> Timing:
    """Return the time scale of a blueprint.

    Args:
        blueprint: its spans are used if turns of some round length fit into them.
        choice: seeded number that decides the rest.
    """
    whole = blueprint.hours * _MINUTES
    fitting = [length for length in _LENGTHS if _FEWEST <= whole / length <= _MOST]
    minutes = min(fitting, key=lambda length: abs(whole / length - _USUAL), default=0)
    horizon = round(whole / minutes) if minutes else _OPEN[choice % len(_OPEN)]
    if not blueprint.has_deadline:
        return Timing(minutes, horizon, 0)
    length = minutes or _HOUR
    due = round(blueprint.due_hours * _MINUTES / length) or horizon * 3 // 5
    return Timing(minutes, horizon, max(_EARLIEST_DUE, min(due, horizon - _LEFT_AFTER_DUE)))


def _duration(minutes: int) -> str:
    days, rest = divmod(minutes, _DAY)
    hours, rest = divmod(rest, _HOUR)
    time = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (rest, "M")) if count)
    return "P" + (f"{days}D" if days else "") + (f"T{time}" if time else "")
