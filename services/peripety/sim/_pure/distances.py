"""Distance of a condition from holding, 0 … 1, as docs/semantics.md defines it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.convert import truthy
from peripety.sim._pure.logic import Evaluation, evaluate
from peripety.sim._pure.operators import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Distance", "distance_of"]

Distance = Callable[[dict[str, Any]], float]
"""Distance of a condition, as a function of the data."""

_FURTHEST_GAP = 1e300
_LEAST_SCALE = 1e-300
# Minimum distance of a failed comparison, as a part of its scale.
_STEP = 1 / 1024

_OPPOSITES = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
    "===": "!==",
    "!==": "===",
}


def _between(a: float, b: float) -> float:
    return max(a - b, b - a)


# Amount by which a comparison of two numbers fails; inequality has no degrees.
_GAPS: dict[str, Callable[[float, float], float]] = {
    "<": lambda a, b: a - b,
    "<=": lambda a, b: a - b,
    ">": lambda a, b: b - a,
    ">=": lambda a, b: b - a,
    "==": _between,
    "===": _between,
}


def distance_of(logic: Any, initial: dict[str, Any], *, opposite: bool = False) -> Distance:
    """Return the distance function of a condition.

    Args:
        logic: the condition.
        initial: data of the first turn, which determines the scales of comparisons.
        opposite: measure the negation of the condition.
    """
    name, operand = _operation(logic)
    if name in {"!", "!!"}:
        inner = operand[0] if isinstance(operand, list) else operand
        return distance_of(inner, initial, opposite=opposite != (name == "!"))
    if name in {"and", "or"} and isinstance(operand, list):
        parts = [distance_of(item, initial, opposite=opposite) for item in operand]
        return _joined(parts, all_of_them=(name == "and") != opposite)
    if name in COMPARISONS:
        meant = _OPPOSITES[name] if opposite else name
        parts = [_comparison(meant, *pair, initial) for pair in pairwise(operand)]
        return _joined(parts, all_of_them=not opposite)
    return partial(_truth_distance, logic, truth=not opposite)


def _operation(logic: Any) -> tuple[str, Any]:
    """Return the operator and operand of an expression; the operator of a value is ""."""
    return next(iter(logic.items())) if isinstance(logic, dict) and logic else ("", None)


def _joined(parts: list[Distance], *, all_of_them: bool) -> Distance:
    """Combine the distances of several conditions: all must hold, or one."""
    extreme: Callable[[Iterable[float]], float] = max if all_of_them else min
    return parts[0] if len(parts) == 1 else lambda data: extreme(part(data) for part in parts)


def _comparison(name: str, left: Any, right: Any, initial: dict[str, Any]) -> Distance:
    """Return the distance function of a comparison."""
    scale, holds, gap_of = _scale(left, right, initial), COMPARISONS[name], _GAPS.get(name)

    def distance(data: dict[str, Any]) -> float:
        try:
            a, b = evaluate(left, data), evaluate(right, data)
            if holds(Evaluation(), a, b):
                return 0.0
        except CoreError:
            return 1.0
        if gap_of is None or not (isinstance(a, float) and isinstance(b, float)):
            return 1.0
        away = min(gap_of(a, b), _FURTHEST_GAP) + scale * _STEP
        return away / (away + scale)

    return distance


def _scale(left: Any, right: Any, initial: dict[str, Any]) -> float:
    """Return the initial difference of two numbers; 1 if it is zero or not defined."""
    try:
        a, b = evaluate(left, initial), evaluate(right, initial)
    except CoreError:
        return 1.0
    if not (isinstance(a, float) and isinstance(b, float)):
        return 1.0
    apart = min(_between(a, b), _FURTHEST_GAP)
    return apart if apart >= _LEAST_SCALE else 1.0


def _truth_distance(logic: Any, data: dict[str, Any], *, truth: bool) -> float:
    """Return 0 if an expression has the given truth value, else 1, also if it fails."""
    try:
        return float(truthy(evaluate(logic, data)) != truth)
    except CoreError:
        return 1.0
