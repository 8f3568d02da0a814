"""Conditions over abstract data: the data for which a condition may hold, and for which it may not.

Conditions refine the data: after `state.a < 5`, the value of `state.a` is below 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure.paths import Path, split_variable
from peripety.sim.proofs.comparisons import FLIPPED, OPPOSITE, compared, kept
from peripety.sim.proofs.domain import ARRAY, BOTTOM, LONGEST, Value, array_of, number
from peripety.sim.proofs.narrowing import narrowed
from peripety.sim.proofs.readings import FAILS

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim.proofs.evaluation import Evaluation

__all__ = ["CHOOSING", "CONDITIONS", "Split", "counted_path", "is_boolean", "plain_path"]

Split = tuple[Value | None, Value | None]
"""Data for which a condition may hold, and data for which it may not; None if impossible."""


def plain_path(logic: Any) -> Path | None:
    """Return the path of a variable without a default."""
    if not isinstance(logic, dict) or len(logic) != 1 or "var" not in logic:
        return None
    operand = logic["var"]
    if isinstance(operand, list):
        operand = operand[0] if len(operand) == 1 else None
    return split_variable(operand) if isinstance(operand, str) and operand else None


_ACCUMULATOR = {"var": "accumulator"}
_COUNTING: tuple[Any, ...] = ({"+": [_ACCUMULATOR, 1.0]}, {"+": [1.0, _ACCUMULATOR]})


def counted_path(logic: Any) -> Path | None:
    """Return the path of an array that the expression counts.

    JSONLogic counts by adding ones in a `reduce`.
    """
    operand = logic.get("reduce") if isinstance(logic, dict) and len(logic) == 1 else None
    if isinstance(operand, list) and len(operand) == 3:  # noqa: PLR2004 - array, body and start
        array, body, start = operand
        if body in _COUNTING and type(start) is float and start == 0:
            return plain_path(array)
    return None


def _either(parts: list[Value | None], data: Value) -> Value | None:
    """Combine the data of several alternatives; a refinement survives only if one alternative is possible."""
    some = [part for part in parts if part is not None]
    return None if not some else some[0] if len(some) == 1 else data


def _failed(run: Evaluation) -> Split:
    run.fails |= FAILS
    return None, None


def _and(run: Evaluation, _name: str, operand: Any, data: Value) -> Split:
    if not isinstance(operand, list):
        return _failed(run)
    left: Value | None = data
    falses: list[Value | None] = []
    for item in operand:
        if left is None:
            break
        left, false = run.split(item, left)
        falses.append(false)
    return left, _either(falses, data)


def _or(run: Evaluation, _name: str, operand: Any, data: Value) -> Split:
    if not isinstance(operand, list):
        return _failed(run)
    left: Value | None = data
    trues: list[Value | None] = []
    for item in operand:
        if left is None:
            break
        true, left = run.split(item, left)
        trues.append(true)
    return _either(trues, data), left


def _choice(run: Evaluation, _name: str, operand: Any, data: Value) -> Split:
    if not isinstance(operand, list):
        return _failed(run)
    left: Value | None = data
    trues: list[Value | None] = []
    falses: list[Value | None] = []
    for condition, branch in zip(operand[:-1:2], operand[1::2], strict=False):
        if left is None:
            break
        chosen, left = run.split(condition, left)
        if chosen is not None:
            true, false = run.split(branch, chosen)
            trues.append(true)
            falses.append(false)
    if left is not None:
        true, false = run.split(operand[-1], left) if len(operand) % 2 else (None, left)
        trues.append(true)
        falses.append(false)
    return _either(trues, data), _either(falses, data)


def _not(run: Evaluation, _name: str, operand: Any, data: Value) -> Split:
    true, false = _truth(run, _name, operand, data)
    return false, true


def _truth(run: Evaluation, _name: str, operand: Any, data: Value) -> Split:
    if isinstance(operand, list):
        return run.split(operand[0], data) if operand else (None, data)
    return run.split(operand, data)


def _comparison(run: Evaluation, name: str, operand: Any, data: Value) -> Split:
    if not isinstance(operand, list) or len(operand) < 2:  # noqa: PLR2004 - two sides
        return _failed(run)
    first, second, *more = operand
    one, other = run.value(first, data), run.value(second, data)
    if not one.kinds or not other.kinds:
        return None, None
    true, false = _compare(run, name, (first, one), (second, other), data)
    for item in more:
        if true is None:
            break
        one, other = other, run.value(item, data)
        if not other.kinds:
            return None, false
        verdict = compared(name, one, other)
        run.fails |= verdict.fails
        true = true if verdict.true else None
        false = data if verdict.false else false
    return true, false


def _compare(
    run: Evaluation, name: str, left: tuple[Any, Value], right: tuple[Any, Value], data: Value
) -> Split:
    (first, one), (second, other) = left, right
    verdict = compared(name, one, other)
    run.fails |= verdict.fails
    if one.array is not None and other.array is not None:
        run.burn(LONGEST)
    result: list[Value | None] = []
    for possible, relation in ((verdict.true, name), (verdict.false, OPPOSITE[name])):
        rest: Value | None = data if possible else None
        for expression, relates, against in ((first, relation, other), (second, FLIPPED[relation], one)):
            if rest is not None:
                rest = _cut(expression, rest, relates, against)
        result.append(rest)
    return result[0], result[1]


def _cut(expression: Any, data: Value, relation: str, other: Value) -> Value | None:
    """Refine the data by a comparison of an expression, if the expression is a path or counts an array."""
    path = plain_path(expression)
    if path is not None:
        return narrowed(data, path, lambda value: kept(value, relation, other))
    counted = counted_path(expression)
    if counted is not None:
        return narrowed(data, counted, lambda value: _of_length(value, relation, other))
    return data


def _of_length(value: Value, relation: str, other: Value) -> Value:
    """Restrict arrays to those whose length satisfies a comparison."""
    array = value.array
    if value.kinds != ARRAY or array is None:
        return value
    lengths = kept(number(array.least, array.most, whole=True), relation, other)
    return array_of(int(lengths.low), int(lengths.high), array.item) if lengths.kinds else BOTTOM


CONDITIONS: dict[str, Callable[[Evaluation, str, Any, Value], Split]] = {
    "and": _and,
    "or": _or,
    "if": _choice,
    "?:": _choice,
    "!": _not,
    "!!": _truth,
    **dict.fromkeys(OPPOSITE, _comparison),
}
# Operators that return one of their operands, so their value is more than a truth value.
CHOOSING = frozenset({"and", "or", "if", "?:"})
_BOOLEAN = frozenset({*CONDITIONS, "in", "all", "some", "none"} - CHOOSING)


def is_boolean(logic: Any) -> bool:
    """Return True if an expression can only evaluate to true or false."""
    return isinstance(logic, dict) and len(logic) == 1 and next(iter(logic)) in _BOOLEAN
