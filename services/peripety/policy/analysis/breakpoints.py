"""Breakpoints of arithmetic comparisons: the numbers at which a comparison over one argument changes.

Sums, differences, products and quotients with literals are monotonic in the argument, and rounding
preserves that. A comparison of such an expression with a literal therefore changes its result at few
numbers. They are found by bisection over all floating-point numbers, with the engine as the oracle.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, copysign, floor, inf, isfinite, nextafter
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import engine
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.policy.analysis.argument_schema import Path


# Within these limits no intermediate result for the argument 0 overflows: 1e9 to the power of 32 is finite.
# An expression that has a value for any number then also has one for 0.
_LARGEST_LITERAL = 1e9
_SMALLEST_DIVISOR = 1 / _LARGEST_LITERAL
_MAX_LEAVES = 32
_MAX_FLOAT = sys.float_info.max
_ORDER_OPERATORS = ("<", "<=")
_MAX_CACHED_COMPARISONS = 1_024
_READING_OPERATORS = frozenset({"var", "missing", "missing_some"})


def find_breakpoints(logic: Any, path: Path) -> tuple[float, ...] | None:
    """Return the numbers around which a comparison may change, or None if they cannot be determined.

    Args:
        logic: a comparison of two sides, by order or loose equality, that reads one argument alone.
        path: segments of the path of the argument.
    """
    return _cached_breakpoints(_Comparison(engine.canonicalize(logic), logic), path)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison, equal to any other one with the same canonical text."""

    text: bytes
    logic: Any = field(compare=False)


@lru_cache(_MAX_CACHED_COMPARISONS)
def _cached_breakpoints(comparison: _Comparison, path: Path) -> tuple[float, ...] | None:
    # Every tool and every variant of a rule needs the same few comparisons, and each takes milliseconds.
    logic = comparison.logic
    ((_, sides),) = logic.items()
    if len(sides) != 2 or _count_leaves(logic) > _MAX_LEAVES:  # noqa: PLR2004 - a pair
        return None
    directions = [_monotonicity(side) for side in sides]
    if None in directions or all(directions) or _may_compare_strings(sides):
        return None
    return tuple(dict.fromkeys(_iter_breakpoints(sides, path)))


def _may_compare_strings(sides: Sequence[Any]) -> bool:
    """Return True if two strings may be compared with each other, which is by characters."""
    literals = [side for side in sides if not _reads_argument(side)]
    if not any(isinstance(side, dict) and "var" in side for side in sides) or not literals:
        return False
    try:
        return isinstance(engine.compile_rule(literals[0]).evaluate({}), str)
    except PeripetyError:
        return False


def _count_leaves(logic: Any) -> int:
    """Return the number of literals and variables."""
    if isinstance(logic, list):
        return sum(map(_count_leaves, logic))
    return sum(map(_count_leaves, logic.values())) if isinstance(logic, dict) else 1


def _monotonicity(logic: Any) -> int | None:
    """Return 1 for an increasing expression, -1 for a decreasing one, 0 for a constant.

    None means that the expression is not known to be monotonic.
    """
    if not _reads_argument(logic):
        value = _to_number(logic)
        return 0 if value is None or abs(value) <= _LARGEST_LITERAL else None
    ((operator, operand),) = logic.items() if isinstance(logic, dict) else (("", None),)
    if operator == "var":
        return 1
    if operator not in _MONOTONICITY_RULES or not isinstance(operand, list):
        return None
    directions = [direction for one in operand if (direction := _monotonicity(one)) is not None]
    return _MONOTONICITY_RULES[operator](operand, directions) if len(directions) == len(operand) else None


def _monotonicity_of_sum(_operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    found = {*directions} - {0}
    return None if len(found) > 1 else next(iter(found), 0)


def _monotonicity_of_difference(operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    first, *rest = directions
    return _monotonicity_of_sum(operand, [first, *(-one for one in rest)]) if rest else -first


def _monotonicity_of_product(operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    reading = [direction for one, direction in zip(operand, directions, strict=True) if _reads_argument(one)]
    if len(reading) > 1:
        return None
    found = reading[0]
    for one in operand:
        if not _reads_argument(one):
            value = _to_number(one)
            found *= 0 if not value else 1 if value > 0 else -1
    return found


def _monotonicity_of_quotient(operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    divided, *divisors = operand
    if not divisors or not _reads_argument(divided):
        return None
    values = [0.0 if _reads_argument(one) else _to_number(one) for one in divisors]
    is_small = any(value and abs(value) < _SMALLEST_DIVISOR for value in values)
    return None if is_small else _monotonicity_of_product(operand, directions)


_MONOTONICITY_RULES: Mapping[str, Callable[[Sequence[Any], Sequence[int]], int | None]] = {
    "+": _monotonicity_of_sum,
    "-": _monotonicity_of_difference,
    "*": _monotonicity_of_product,
    "/": _monotonicity_of_quotient,
}


def _reads_argument(logic: Any) -> bool:
    """Return True if an expression depends on the argument, or on its presence."""
    if isinstance(logic, list):
        return any(map(_reads_argument, logic))
    return isinstance(logic, dict) and (
        not _READING_OPERATORS.isdisjoint(logic) or any(map(_reads_argument, logic.values()))
    )


def _to_number(logic: Any) -> float | None:
    """Return the number that arithmetic coerces a literal to, or None if it has no numeric value."""
    try:
        value = engine.compile_rule({"+": [logic, 0]}).evaluate({})
    except PeripetyError:
        return None
    return float(value)


def _iter_breakpoints(sides: Sequence[Any], path: Path) -> Iterator[float]:
    for operator in _ORDER_OPERATORS:
        compared = _comparison_function(engine.compile_rule({operator: sides}), path)
        if compared(0.0) is None:
            return  # then it has no value for any other number either
        low, high = (_find_last_with_value(compared, end) for end in (-_MAX_FLOAT, _MAX_FLOAT))
        for end in (low, high):
            yield from (end, nextafter(end, copysign(inf, end))) if abs(end) < _MAX_FLOAT else ()
        if compared(low) is not compared(high):
            yield from _bisect(compared, low, high)


def _find_last_with_value(compared: Callable[[float], bool | None], end: float) -> float:
    return end if compared(end) is not None else _bisect(lambda x: compared(x) is None, 0.0, end)[0]


def _comparison_function(rule: engine.CompiledRule, path: Path) -> Callable[[float], bool | None]:
    def ask(number: float) -> bool | None:
        value: Any = number
        for segment in reversed(("arguments", *path)):
            value = {segment: value}
        try:
            return bool(rule.evaluate(value))
        except PeripetyError:
            return None

    return ask


def _bisect(function: Callable[[float], Any], low: float, high: float) -> tuple[float, float]:
    """Return two adjacent numbers between which the answer changes, given that it differs at the two ends."""
    first = function(low)
    one, other = _float_to_ordinal(low), _float_to_ordinal(high)
    while abs(other - one) > 1:
        middle = (one + other) // 2
        if function(_ordinal_to_float(middle)) is first:
            one = middle
        else:
            other = middle
    return _ordinal_to_float(one), _ordinal_to_float(other)


def _float_to_ordinal(number: float) -> int:
    """Return the position of a number in the order of all floating-point numbers."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return int(bits) if bits >= 0 else -(int(bits) & sys.maxsize)


def _ordinal_to_float(ordinal: int) -> float:
    (number,) = struct.unpack("<d", struct.pack("<q", abs(ordinal)))
    return float(number) if ordinal >= 0 else -float(number)


_IntervalEnd: TypeAlias = tuple[Fraction, bool]
"""The end of an interval, and whether it is excluded; upper ends are negated."""

_MAX_EXACT_INTEGER = 2**53 - 1
_MAX_FINITE = sys.float_info.max


def to_json_number(number: float) -> float:
    """Return a number as JSON writes it: an integer if every reader represents it exactly."""
    return int(number) if number == int(number) and abs(number) <= _MAX_EXACT_INTEGER else number


def numbers_between(low: float, high: float, schema: Mapping[str, Any], *, whole: bool) -> tuple[float, ...]:
    """Return some numbers strictly between two others; empty only if the schema accepts none.

    Args:
        low: the lower one, or minus infinity.
        high: the higher one, or infinity.
        schema: a schema that may have bounds and a step.
        whole: True if only integers count.
    """
    lower, upper = (
        [(_to_fraction(sign * bound), excluded) for bound, excluded in bounds if isfinite(bound)]
        for sign, bounds in (
            (1, ((low, True), *_iter_bounds(schema, "minimum", "exclusiveMinimum"))),
            (-1, ((high, True), *_iter_bounds(schema, "maximum", "exclusiveMaximum"))),
        )
    )
    safe, finite = (_to_fraction(-_MAX_EXACT_INTEGER), False), (_to_fraction(-_MAX_FINITE), False)
    return tuple(
        _exact_numbers_between(max([safe, *lower]), max([safe, *upper]), _schema_step(schema, whole=whole))
        or _large_numbers_between(max([finite, *lower]), max([finite, *upper])),
    )


def _exact_numbers_between(lower: _IntervalEnd, upper: _IntervalEnd, step: Fraction | None) -> list[float]:
    """Return some multiples of a step between two ends, within the range of exact integers."""
    (least, open_low), (most, open_high) = lower, (-upper[0], upper[1])
    if step is None:
        middle = (least + most) / 2
        return _filter_interval((floor(least) + 1, middle, least, most, ceil(most) - 1), lower, upper)
    first = (floor(least / step) + 1 if open_low else ceil(least / step)) * step
    last = (ceil(most / step) - 1 if open_high else floor(most / step)) * step
    if first > last:
        return []
    # If multiples have more digits than floating-point numbers, those next to the ends may still be
    # multiples.
    return _filter_interval((first, last), lower, upper) or _filter_interval(
        _with_neighbours(least, most),
        lower,
        upper,
    )


def _large_numbers_between(lower: _IntervalEnd, upper: _IntervalEnd) -> list[float]:
    """Return some numbers between two ends outside the range of exact integers, multiples or not."""
    numbers = _with_neighbours(lower[0], -upper[0], -_MAX_EXACT_INTEGER, _MAX_EXACT_INTEGER)
    return _filter_interval((one for one in numbers if abs(one) > _MAX_EXACT_INTEGER), lower, upper)


def _filter_interval(
    numbers: Iterable[Fraction | float],
    lower: _IntervalEnd,
    upper: _IntervalEnd,
) -> list[float]:
    """Return the given numbers, as JSON writes them, that lie between two ends."""
    plainly = dict.fromkeys(to_json_number(float(number)) for number in numbers)
    exactly = ((one, _to_fraction(one)) for one in plainly)
    return [one for one, exact in exactly if lower <= (exact, False) and upper <= (-exact, False)]


def _with_neighbours(*numbers: Fraction | float) -> Iterator[float]:
    """Yield numbers and their floating-point neighbours."""
    for number in map(float, numbers):
        yield from (one for one in (number, nextafter(number, inf), nextafter(number, -inf)) if isfinite(one))


def _to_fraction(number: float) -> Fraction:
    """Return a number by its decimal digits, as schemas evaluate multiples."""
    return Fraction(str(number))


def _iter_bounds(schema: Mapping[str, Any], included: str, excluded: str) -> Iterator[tuple[float, bool]]:
    for key, is_excluded in ((included, False), (excluded, True)):
        bound = schema.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and abs(bound) < inf:
            yield bound, is_excluded


def _schema_step(schema: Mapping[str, Any], *, whole: bool) -> Fraction | None:
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0:
        exact = Fraction(str(step))
        return Fraction(exact.numerator) if whole else exact
    return Fraction(1) if whole else None
