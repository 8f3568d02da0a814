"""Interval arithmetic: bounds of every result, and the possible errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from peripety.sim.proofs.domain import BOTTOM, NUMBER, Value, clamped, number
from peripety.sim.proofs.readings import FAILS, OUTGROWS, as_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ARITHMETIC", "difference", "product", "total"]

Result = tuple[Value, int]

_ZERO = number(0.0, 0.0, whole=True)
_ONE = number(1.0, 1.0, whole=True)
# Smallest positive number.
_TINY = 5e-324


def total(one: Value, other: Value) -> Result:
    """Return the sums of two intervals."""
    return _fitting(one.low + other.low, one.high + other.high, whole=one.whole and other.whole)


def difference(one: Value, other: Value) -> Result:
    """Return the differences of two intervals."""
    return _fitting(one.low - other.high, one.high - other.low, whole=one.whole and other.whole)


def product(one: Value, other: Value) -> Result:
    """Return the products of two intervals."""
    corners = (one.low * other.low, one.low * other.high, one.high * other.low, one.high * other.high)
    return _fitting(min(corners), max(corners), whole=one.whole and other.whole)


def _quotient(one: Value, other: Value) -> Result:
    step = 1.0 if other.whole else _TINY
    corners: list[float] = []
    for low, high in ((other.low, min(other.high, -step)), (max(other.low, step), other.high)):
        if low <= high:
            corners += [bound / divisor for bound in (one.low, one.high) for divisor in (low, high)]
    fails = FAILS if other.low <= 0 <= other.high else 0
    if not corners:
        return BOTTOM, fails
    result, outgrows = _fitting(min(corners), max(corners), whole=False)
    return result, fails | outgrows


def _remainder(one: Value, other: Value) -> Result:
    fails = FAILS if other.low <= 0 <= other.high else 0
    if other.low == other.high == 0:
        return BOTTOM, fails
    if one.low == one.high and other.low == other.high:
        value = math.fmod(one.low, other.low) + 0.0
        return number(value, value, whole=value.is_integer()), fails
    most = max(-other.low, other.high)
    low = max(min(one.low, 0.0), -most)
    high = min(max(one.high, 0.0), most)
    return number(low + 0.0, high + 0.0, whole=one.whole and other.whole), fails


def _fitting(low: float, high: float, *, whole: bool) -> Result:
    value, beyond = clamped(low, high, whole=whole)
    return value, OUTGROWS if beyond else 0


def _folded(first: Value, rest: Sequence[Value], step: Callable[[Value, Value], Result]) -> Result:
    fails = 0
    for value in rest:
        if not first.kinds or not value.kinds:
            return BOTTOM, fails
        first, fails_here = step(first, value)
        fails |= fails_here
    return first, fails


def _numbers(values: Sequence[Value]) -> tuple[list[Value], int]:
    fails = 0
    numbers = []
    for value in values:
        as_number, fails_here = as_numbers(value)
        numbers.append(as_number)
        fails |= fails_here
    return numbers, fails


def _sum(values: Sequence[Value]) -> Result:
    numbers, fails = _numbers(values)
    result, fails_here = _folded(_ZERO, numbers, total)
    return result, fails | fails_here


def _times(values: Sequence[Value]) -> Result:
    numbers, fails = _numbers(values)
    result, fails_here = _folded(_ONE, numbers, product)
    return result, fails | fails_here


def _minus(values: Sequence[Value]) -> Result:
    numbers, fails = _numbers(values)
    first, *rest = numbers if len(numbers) > 1 else [_ZERO, *numbers]
    result, fails_here = _folded(first, rest, difference)
    return result, fails | fails_here


def _divided(values: Sequence[Value]) -> Result:
    numbers, fails = _numbers(values)
    first, *rest = numbers if len(numbers) > 1 else [_ONE, *numbers]
    result, fails_here = _folded(first, rest, _quotient)
    return result, fails | fails_here


def _modulo(values: Sequence[Value]) -> Result:
    numbers, fails = _numbers(values)
    if len(numbers) < 2:  # noqa: PLR2004 - two operands
        return BOTTOM, FAILS
    result, fails_here = _folded(numbers[0], numbers[1:], _remainder)
    return result, fails | fails_here


def _extreme(better: Callable[[float, float], float]) -> Callable[[Sequence[Value]], Result]:
    def extreme(values: Sequence[Value]) -> Result:
        fails = 0 if values and all(value.kinds == NUMBER for value in values) else FAILS
        if not values or not all(value.kinds & NUMBER for value in values):
            return BOTTOM, FAILS
        low, high = values[0].low, values[0].high
        for value in values[1:]:
            low, high = better(low, value.low), better(high, value.high)
        return number(low, high, whole=all(value.whole for value in values)), fails

    return extreme


ARITHMETIC: dict[str, Callable[[Sequence[Value]], Result]] = {
    "+": _sum,
    "*": _times,
    "-": _minus,
    "/": _divided,
    "%": _modulo,
    "min": _extreme(min),
    "max": _extreme(max),
}
"""Numeric operators over the values of their operands."""
