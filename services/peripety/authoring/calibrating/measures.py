"""Parameters of the calibration search, and the scales derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.authoring.assembling.gauges import Scale, whole
from peripety.authoring.blueprint import Role, Size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.authoring.blueprint import Blueprint, Quantity

__all__ = ["Measures", "first_measures", "scales"]

_BUFFERS = {Size.SMALL: 9.0, Size.MEDIUM: 13.0, Size.LARGE: 18.0}
_UNITS = (1, 2, 5, 10)
_AT_START = 2
_AMONG = 4
"""The start of a counted threat, in steps."""
_KEPT, _MUCH = 3, 5
_FINE = 4
_PARTS = (3.5, 3, 2.5, 2, 1.5, 1, 0.5, 0.25, 0.125)
"""The allowed step sizes below four; sums of them are exact in floating point."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Parameters of the calibration search.

    Attributes:
        buffers: for each quantity with a loss condition, the number of steps from the start to the loss.
        pressures: for each of them, the factor of the weight of harmful events.
        target: the number of steps of all goals together.
        due: the share of the goal that the deadline requires.
    """

    buffers: Mapping[str, float]
    pressures: Mapping[str, float]
    target: float
    due: float


def first_measures(blueprint: Blueprint, horizon: int) -> Measures:
    """Return the starting point of the search."""
    losing = [one for one in blueprint.quantities if not one.is_unseen and one.role is not Role.GOAL]
    return Measures(
        {one.name: _BUFFERS[one.start] for one in losing},
        {one.name: 1.0 for one in losing},
        horizon * 0.8,
        0.4,
    )


def scales(blueprint: Blueprint, measures: Measures, number: Callable[[str, int], int]) -> dict[str, Scale]:
    """Return the scale of each quantity.

    Args:
        blueprint: a complete blueprint; known amounts are not changed.
        measures: the numbers of steps.
        number: seeded number for a tag, below a bound; chooses the step size where the amount is unknown.
    """
    goals = sum(one.role is Role.GOAL and not one.is_unseen for one in blueprint.quantities)
    return {
        one.name: _scale(one, measures, goals, _UNITS[number(f"unit {one.name}", len(_UNITS))])
        for one in blueprint.quantities
    }


def _scale(quantity: Quantity, measures: Measures, goals: int, unit: float) -> Scale:
    if quantity.is_unseen:
        is_threat = quantity.role is Role.THREAT
        return Scale(1, 0 if is_threat else _KEPT, _MUCH if is_threat else 0)
    steps = measures.target / goals if quantity.role is Role.GOAL else measures.buffers[quantity.name]
    if quantity.role is Role.GOAL:
        unit = _unit(quantity.amount, steps) or unit
        return Scale(unit, 0, quantity.amount or whole(round(steps) * unit))
    if quantity.role is Role.THREAT:
        unit = _unit(quantity.amount, _AMONG) or unit
        start = quantity.amount or _AT_START * unit
        return Scale(unit, start, whole(start + round(steps) * unit))
    unit = _unit(quantity.amount, steps) or unit
    return Scale(unit, quantity.amount or whole(round(steps) * unit), 0)


def _unit(amount: float | None, steps: float) -> float:
    """Return a round step size, such that the steps make about the amount; 0 if the amount is unknown."""
    if not amount:
        return 0
    step = amount / steps
    if step < _FINE:
        return next((part for part in _PARTS if part <= step), _PARTS[-1])
    digits = len(str(int(step)))
    return round(step, min(2 - digits, 0))
