"""Interval arithmetic: bounds of every result and the possible errors, and coercions of abstract values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from peripety.engine._reference.jsonlogic_operators import to_number
from peripety.engine.backend_protocol import EngineError
from peripety.engine.static_analysis.abstract_domain import (
    ABSENT,
    ANY_NUMBER,
    ARRAY,
    BOTTOM,
    FALSE,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    TRUE,
    AbstractArray,
    AbstractValue,
    clamp,
    from_literal,
    join,
    number_range,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# Possible errors, as bits: by kinds of values, or by sizes and work limits.
FAILS = 1
EXCEEDS = 2
_BLANK = frozenset(("",))


def may_be_true(value: AbstractValue) -> bool:
    """Return True if some value is truthy."""
    kinds = value.kinds
    return bool(
        kinds & (TRUE | OBJECT)
        or (kinds & NUMBER and (value.low != 0 or value.high != 0))
        or (kinds & TEXT and value.texts != _BLANK)
        or (value.array is not None and value.array.maximum > 0),
    )


def may_be_false(value: AbstractValue) -> bool:
    """Return True if some value is falsy."""
    kinds = value.kinds
    return bool(
        kinds & (FALSE | NULL | ABSENT)
        or (kinds & NUMBER and value.low <= 0 <= value.high)
        or (kinds & TEXT and (value.texts is None or "" in value.texts))
        or (value.array is not None and value.array.minimum == 0),
    )


def restrict_to_true(value: AbstractValue) -> AbstractValue:
    """Return the truthy values."""
    kinds = value.kinds & ~(FALSE | NULL | ABSENT)
    low, high, texts, array = value.low, value.high, value.texts, value.array
    if kinds & NUMBER:
        low, high = _exclude_zero(low, high, whole=value.whole)
        kinds, low, high = (kinds, low, high) if low <= high else (kinds & ~NUMBER, BOTTOM.low, BOTTOM.high)
    if kinds & TEXT and texts is not None:
        texts = texts - _BLANK
        kinds = kinds if texts else kinds & ~TEXT
    if array is not None:
        array = AbstractArray(max(array.minimum, 1), array.maximum, array.item) if array.maximum else None
        kinds = kinds if array else kinds & ~ARRAY
    return AbstractValue(kinds, low, high, value.whole, texts, array, value.object)


def _exclude_zero(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """Return an interval without zero at its ends; the next number replaces it."""
    step = 1.0 if whole else 5e-324
    return (step if low == 0 else low), (-step if high == 0 else high)


def restrict_to_false(value: AbstractValue) -> AbstractValue:
    """Return the falsy values."""
    kinds = value.kinds & (FALSE | NULL | ABSENT)
    result = AbstractValue(kinds)
    if value.kinds & NUMBER and value.low <= 0 <= value.high:
        result = join(result, from_literal(0.0))
    if value.kinds & TEXT and (value.texts is None or "" in value.texts):
        result = join(result, from_literal(""))
    if value.array is not None and value.array.minimum == 0:
        result = join(result, from_literal([]))
    return result


def to_numbers(value: AbstractValue) -> tuple[AbstractValue, int]:
    """Convert to numbers; also return the errors of values that are not numeric."""
    if value.kinds == NUMBER:
        return value, 0
    result, fails = AbstractValue(value.kinds & NUMBER, value.low, value.high, value.whole), 0
    if value.kinds & (FALSE | NULL | ABSENT):
        result = join(result, from_literal(0.0))
    if value.kinds & TRUE:
        result = join(result, from_literal(1.0))
    if value.kinds & (ARRAY | OBJECT):
        fails = FAILS
    if value.kinds & TEXT:
        if value.texts is None:
            return ANY_NUMBER, FAILS
        for text in value.texts:
            try:
                result = join(result, from_literal(to_number(text)))
            except EngineError:
                fails = FAILS
    return result, fails


IntervalResult = tuple[AbstractValue, int]

_ZERO = number_range(0.0, 0.0, whole=True)
_ONE = number_range(1.0, 1.0, whole=True)
# Smallest positive number.
_TINY = 5e-324


def add(one: AbstractValue, other: AbstractValue) -> IntervalResult:
    """Return the sums of two intervals."""
    return _clamp_result(one.low + other.low, one.high + other.high, whole=one.whole and other.whole)


def subtract(one: AbstractValue, other: AbstractValue) -> IntervalResult:
    """Return the differences of two intervals."""
    return _clamp_result(one.low - other.high, one.high - other.low, whole=one.whole and other.whole)


def multiply(one: AbstractValue, other: AbstractValue) -> IntervalResult:
    """Return the products of two intervals."""
    corners = (one.low * other.low, one.low * other.high, one.high * other.low, one.high * other.high)
    return _clamp_result(min(corners), max(corners), whole=one.whole and other.whole)


def _divide(one: AbstractValue, other: AbstractValue) -> IntervalResult:
    step = 1.0 if other.whole else _TINY
    corners: list[float] = []
    for low, high in ((other.low, min(other.high, -step)), (max(other.low, step), other.high)):
        if low <= high:
            corners += [bound / divisor for bound in (one.low, one.high) for divisor in (low, high)]
    fails = FAILS if other.low <= 0 <= other.high else 0
    if not corners:
        return BOTTOM, fails
    result, outgrows = _clamp_result(min(corners), max(corners), whole=False)
    return result, fails | outgrows


def _take_remainder(one: AbstractValue, other: AbstractValue) -> IntervalResult:
    fails = FAILS if other.low <= 0 <= other.high else 0
    if other.low == other.high == 0:
        return BOTTOM, fails
    if one.low == one.high and other.low == other.high:
        value = math.fmod(one.low, other.low) + 0.0
        return number_range(value, value, whole=value.is_integer()), fails
    most = max(-other.low, other.high)
    low = max(min(one.low, 0.0), -most)
    high = min(max(one.high, 0.0), most)
    return number_range(low + 0.0, high + 0.0, whole=one.whole and other.whole), fails


def _clamp_result(low: float, high: float, *, whole: bool) -> IntervalResult:
    value, beyond = clamp(low, high, whole=whole)
    return value, EXCEEDS if beyond else 0


def _fold(
    first: AbstractValue,
    rest: Sequence[AbstractValue],
    step: Callable[[AbstractValue, AbstractValue], IntervalResult],
) -> IntervalResult:
    fails = 0
    for value in rest:
        if not first.kinds or not value.kinds:
            return BOTTOM, fails
        first, fails_here = step(first, value)
        fails |= fails_here
    return first, fails


def _to_all_numbers(values: Sequence[AbstractValue]) -> tuple[list[AbstractValue], int]:
    fails = 0
    numbers = []
    for value in values:
        as_number, fails_here = to_numbers(value)
        numbers.append(as_number)
        fails |= fails_here
    return numbers, fails


def _add_all(values: Sequence[AbstractValue]) -> IntervalResult:
    numbers, fails = _to_all_numbers(values)
    result, fails_here = _fold(_ZERO, numbers, add)
    return result, fails | fails_here


def _multiply_all(values: Sequence[AbstractValue]) -> IntervalResult:
    numbers, fails = _to_all_numbers(values)
    result, fails_here = _fold(_ONE, numbers, multiply)
    return result, fails | fails_here


def _subtract_all(values: Sequence[AbstractValue]) -> IntervalResult:
    numbers, fails = _to_all_numbers(values)
    first, *rest = numbers if len(numbers) > 1 else [_ZERO, *numbers]
    result, fails_here = _fold(first, rest, subtract)
    return result, fails | fails_here


def _divide_all(values: Sequence[AbstractValue]) -> IntervalResult:
    numbers, fails = _to_all_numbers(values)
    first, *rest = numbers if len(numbers) > 1 else [_ONE, *numbers]
    result, fails_here = _fold(first, rest, _divide)
    return result, fails | fails_here


def _take_remainders(values: Sequence[AbstractValue]) -> IntervalResult:
    numbers, fails = _to_all_numbers(values)
    if len(numbers) < 2:  # noqa: PLR2004 - two operands
        return BOTTOM, FAILS
    result, fails_here = _fold(numbers[0], numbers[1:], _take_remainder)
    return result, fails | fails_here


def _make_extreme(
    better: Callable[[float, float], float],
) -> Callable[[Sequence[AbstractValue]], IntervalResult]:
    def extreme(values: Sequence[AbstractValue]) -> IntervalResult:
        fails = 0 if values and all(value.kinds == NUMBER for value in values) else FAILS
        if not values or not all(value.kinds & NUMBER for value in values):
            return BOTTOM, FAILS
        low, high = values[0].low, values[0].high
        for value in values[1:]:
            low, high = better(low, value.low), better(high, value.high)
        return number_range(low, high, whole=all(value.whole for value in values)), fails

    return extreme


ARITHMETIC: dict[str, Callable[[Sequence[AbstractValue]], IntervalResult]] = {
    "+": _add_all,
    "*": _multiply_all,
    "-": _subtract_all,
    "/": _divide_all,
    "%": _take_remainders,
    "min": _make_extreme(min),
    "max": _make_extreme(max),
}
"""Numeric operators over the values of their operands."""
