"""Analysis of endings: the quantities that they compare, and the harmful direction of each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety import sim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FALLING", "RISING", "Reading", "directions", "matched", "numbers", "readings"]

RISING, FALLING = 1, -1

_WHEN_TRUE = {"<": FALLING, "<=": FALLING, ">": RISING, ">=": RISING}
_MATCHING = frozenset({"==", "!=", "===", "!==", "in", "%"})
_GATHERING = frozenset({"and", "or", "!!", "+", "min", "max"})


@dataclass(frozen=True, slots=True)
class Reading:
    """Quantity in a condition.

    Attributes:
        path: its path, as effects write it.
        direction: the direction that makes the condition hold: `RISING` or `FALLING`.
        against: the expression on the other side; None if the quantity is only a part of its side.
    """

    path: str
    direction: int
    against: Any = None


def readings(logic: Any, direction: int = RISING) -> Iterator[Reading]:
    """Yield the quantities of an expression, with the direction that makes it larger, or true."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return
    ((operator, given),) = logic.items()
    arguments = given if isinstance(given, list) else [given]
    if operator == "var":
        if arguments and isinstance(arguments[0], str):
            yield Reading(sim.variable_path(arguments[0]), direction)
    elif operator in _WHEN_TRUE:
        for left, right in pairwise(arguments):
            yield from _compared(left, right, direction * _WHEN_TRUE[operator])
            yield from _compared(right, left, -direction * _WHEN_TRUE[operator])
    else:
        for index, argument in enumerate(arguments):
            way = _passed_on(operator, index, arguments)
            if way:
                yield from readings(argument, direction * way)


def _passed_on(operator: str, index: int, arguments: list[Any]) -> int:
    """Return the effect of a larger operand on an operation: 1 raises it, -1 lowers it, 0 is unknown."""
    if operator in _GATHERING:
        return RISING
    if operator == "!":
        return FALLING
    if operator == "-":
        return FALLING if index > 0 or len(arguments) == 1 else RISING
    if operator == "*":
        return _sign_of([*arguments[:index], *arguments[index + 1 :]])
    return 0


def _sign_of(factors: list[Any]) -> int:
    """Return the sign of a product; 0 if it is 0, or unknown because a factor is not a literal."""
    sign = 1
    for factor in factors:
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not factor:
            return 0
        sign *= 1 if factor > 0 else -1
    return sign


def directions(found: Iterable[Reading]) -> dict[str, int]:
    """Return the direction of each path towards its condition, 0 for both directions."""
    votes: dict[str, set[int]] = {}
    for reading in found:
        votes.setdefault(reading.path, set()).add(reading.direction)
    return {path: ways.pop() if len(ways) == 1 else 0 for path, ways in votes.items()}


def numbers(state: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of an initial state by path, in document order, without arrays."""
    return {sim.format_path(path): value for path, value in _numbers(state, ("state",))}


def matched(spec: dict[str, Any]) -> frozenset[str]:
    """Return the paths in equalities, membership tests or remainders of any rule."""
    return frozenset(_matched(spec, within=False))


def _compared(side: Any, other: Any, direction: int) -> Iterator[Reading]:
    is_quantity = isinstance(side, dict) and "var" in side
    for reading in readings(side, direction):
        yield Reading(reading.path, direction, other) if is_quantity else reading


def _numbers(node: dict[str, Any], place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _numbers(value, (*place, key))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*place, key), value


def _matched(node: Any, *, within: bool) -> Iterator[str]:
    """Yield the variables in equalities below a node; any part of a document may be a rule."""
    if isinstance(node, list):
        for item in node:
            yield from _matched(item, within=within)
    elif isinstance(node, dict):
        for key, value in node.items():
            if within and key == "var":
                name = value[0] if isinstance(value, list) and value else value
                if isinstance(name, str):
                    yield sim.variable_path(name)
            else:
                yield from _matched(value, within=within or key in _MATCHING)
