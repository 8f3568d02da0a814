"""Breakpoints of arithmetic comparisons: the numbers at which a comparison over one argument changes.

Sums, differences, products and quotients with literals are monotonic in the argument, and rounding preserves
that. A comparison of such an expression with a literal therefore changes its result at few numbers. They are
found by bisection over all floating-point numbers, with the engine as the oracle.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from math import copysign, inf, nextafter
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.policies.analysis.paths import Path

__all__ = ["turns"]

# Within these limits no intermediate result for the argument 0 overflows: 1e9 to the power of 32 is finite.
# An expression that has a value for any number then also has one for 0.
_LARGEST_LITERAL = 1e9
_SMALLEST_DIVISOR = 1 / _LARGEST_LITERAL
_MOST_LEAVES = 32
_GREATEST = sys.float_info.max
_COMPARED = ("<", "<=")
_MOST_REMEMBERED = 1_024
_READING = frozenset({"var", "missing", "missing_some"})


def turns(logic: Any, path: Path) -> tuple[float, ...] | None:
    """Return the numbers around which a comparison may change, or None if they cannot be determined.

    Args:
        logic: a comparison of two sides, by order or loose equality, that reads one argument alone.
        path: segments of the path of the argument.
    """
    return _remembered(_Comparison(sim.canonical(logic), logic), path)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison, equal to any other one with the same canonical text."""

    text: bytes
    logic: Any = field(compare=False)


@lru_cache(_MOST_REMEMBERED)
def _remembered(comparison: _Comparison, path: Path) -> tuple[float, ...] | None:
    # Every tool and every variant of a rule needs the same few comparisons, and each takes milliseconds.
    logic = comparison.logic
    ((_, sides),) = logic.items()
    if len(sides) != 2 or _leaves(logic) > _MOST_LEAVES:  # noqa: PLR2004 - a pair
        return None
    directions = [_direction(side) for side in sides]
    if None in directions or all(directions) or _compares_texts(sides):
        return None
    return tuple(dict.fromkeys(_turns(sides, path)))


def _compares_texts(sides: Sequence[Any]) -> bool:
    """Return True if two strings may be compared with each other, which is by characters."""
    literals = [side for side in sides if not _reads(side)]
    if not any(isinstance(side, dict) and "var" in side for side in sides) or not literals:
        return False
    try:
        return isinstance(sim.rule(literals[0]).evaluate({}), str)
    except PeripetyError:
        return False


def _leaves(logic: Any) -> int:
    """Return the number of literals and variables."""
    if isinstance(logic, list):
        return sum(map(_leaves, logic))
    return sum(map(_leaves, logic.values())) if isinstance(logic, dict) else 1


def _direction(logic: Any) -> int | None:
    """Return 1 for an increasing expression, -1 for a decreasing one, 0 for a constant.

    None means that the expression is not known to be monotonic.
    """
    if not _reads(logic):
        value = _value(logic)
        return 0 if value is None or abs(value) <= _LARGEST_LITERAL else None
    ((operator, operand),) = logic.items() if isinstance(logic, dict) else (("", None),)
    if operator == "var":
        return 1
    if operator not in _ARITHMETIC or not isinstance(operand, list):
        return None
    directions = [direction for one in operand if (direction := _direction(one)) is not None]
    return _ARITHMETIC[operator](operand, directions) if len(directions) == len(operand) else None


def _sum(_operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    found = {*directions} - {0}
    return None if len(found) > 1 else next(iter(found), 0)


def _difference(operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    first, *rest = directions
    return _sum(operand, [first, *(-one for one in rest)]) if rest else -first


def _product(operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    reading = [direction for one, direction in zip(operand, directions, strict=True) if _reads(one)]
    if len(reading) > 1:
        return None
    found = reading[0]
    for one in operand:
        if not _reads(one):
            value = _value(one)
            found *= 0 if not value else 1 if value > 0 else -1
    return found


def _quotient(operand: Sequence[Any], directions: Sequence[int]) -> int | None:
    divided, *divisors = operand
    if not divisors or not _reads(divided):
        return None
    values = [0.0 if _reads(one) else _value(one) for one in divisors]
    is_small = any(value and abs(value) < _SMALLEST_DIVISOR for value in values)
    return None if is_small else _product(operand, directions)


_ARITHMETIC: Mapping[str, Callable[[Sequence[Any], Sequence[int]], int | None]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
}


def _reads(logic: Any) -> bool:
    """Return True if an expression depends on the argument, or on its presence."""
    if isinstance(logic, list):
        return any(map(_reads, logic))
    return isinstance(logic, dict) and (not _READING.isdisjoint(logic) or any(map(_reads, logic.values())))


def _value(logic: Any) -> float | None:
    """Return the number that arithmetic coerces a literal to, or None if it has no numeric value."""
    try:
        value = sim.rule({"+": [logic, 0]}).evaluate({})
    except PeripetyError:
        return None
    return float(value)


def _turns(sides: Sequence[Any], path: Path) -> Iterator[float]:
    for operator in _COMPARED:
        compared = _asked(sim.rule({operator: sides}), path)
        if compared(0.0) is None:
            return  # then it has no value for any other number either
        low, high = (_last_with_value(compared, end) for end in (-_GREATEST, _GREATEST))
        for end in (low, high):
            yield from (end, nextafter(end, copysign(inf, end))) if abs(end) < _GREATEST else ()
        if compared(low) is not compared(high):
            yield from _turn(compared, low, high)


def _last_with_value(compared: Callable[[float], bool | None], end: float) -> float:
    return end if compared(end) is not None else _turn(lambda x: compared(x) is None, 0.0, end)[0]


def _asked(rule: sim.Rule, path: Path) -> Callable[[float], bool | None]:
    def ask(number: float) -> bool | None:
        value: Any = number
        for segment in reversed(("arguments", *path)):
            value = {segment: value}
        try:
            return bool(rule.evaluate(value))
        except PeripetyError:
            return None

    return ask


def _turn(asked: Callable[[float], Any], low: float, high: float) -> tuple[float, float]:
    """Return two adjacent numbers between which the answer changes, given that it differs at the two ends."""
    first = asked(low)
    one, other = _ordinal(low), _ordinal(high)
    while abs(other - one) > 1:
        middle = (one + other) // 2
        if asked(_number(middle)) is first:
            one = middle
        else:
            other = middle
    return _number(one), _number(other)


def _ordinal(number: float) -> int:
    """Return the position of a number in the order of all floating-point numbers."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return int(bits) if bits >= 0 else -(int(bits) & sys.maxsize)


def _number(ordinal: int) -> float:
    (number,) = struct.unpack("<d", struct.pack("<q", abs(ordinal)))
    return float(number) if ordinal >= 0 else -float(number)
