"""Conditions over abstract data: possible results of comparisons, and refinement of the data.

After `state.a < 5`, for example, the value of `state.a` is below 5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.engine.paths import Path, split_variable
from peripety.engine.static_analysis.abstract_domain import (
    ABSENT,
    ARRAY,
    BOTTOM,
    FALSE,
    MAX_LENGTH,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    TRUE,
    AbstractObject,
    AbstractValue,
    array_range,
    get_single,
    number_range,
    read_absent_as_null,
    replace_member,
)
from peripety.engine.static_analysis.arithmetic import EXCEEDS, FAILS, to_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine.static_analysis.evaluation import AbstractEvaluation


NEGATED = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "==": "!=",
    "!=": "==",
    "===": "!==",
    "!==": "===",
}
"""Comparison that holds if and only if the other does not."""
SWAPPED = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "==": "==",
    "!=": "!=",
    "===": "===",
    "!==": "!==",
}
"""Comparison with exchanged sides."""

_MAX_EXACT = 2.0**53
_PAIRS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


class ComparisonResult(NamedTuple):
    """Possible results of a comparison: it may hold, it may not hold, and the errors it may raise."""

    true: bool
    false: bool
    fails: int


def compare(relation: str, one: AbstractValue, other: AbstractValue) -> ComparisonResult:
    """Compare two values that are present."""
    if one.kinds == NUMBER == other.kinds:
        return ComparisonResult(
            _may_relate(relation, one, other),
            _may_relate(NEGATED[relation], one, other),
            0,
        )
    if relation in {"===", "!=="}:
        return _compare_strictly(relation, one, other)
    true = false = False
    fails = 0
    if one.kinds & TEXT and other.kinds & TEXT:
        true, false = _relate_texts(relation, one.texts, other.texts)
    if one.kinds != TEXT or other.kinds != TEXT:
        mine, fails_here = to_numbers(one)
        theirs, fails_there = to_numbers(other)
        fails = fails_here | fails_there
        if mine.kinds and theirs.kinds:
            true = true or _may_relate(relation, mine, theirs)
            false = false or _may_relate(NEGATED[relation], mine, theirs)
    return ComparisonResult(true, false, fails)


def _may_relate(relation: str, one: AbstractValue, other: AbstractValue) -> bool:
    """Return True if the relation holds between some two numbers of two intervals."""
    match relation:
        case "<":
            return one.low < other.high
        case "<=":
            return one.low <= other.high
        case ">":
            return one.high > other.low
        case ">=":
            return one.high >= other.low
        case "==" | "===":
            return max(one.low, other.low) <= min(one.high, other.high)
        case _:
            return not one.low == one.high == other.low == other.high


def _relate_texts(
    relation: str,
    some: frozenset[str] | None,
    others: frozenset[str] | None,
) -> tuple[bool, bool]:
    if some is None or others is None:
        return True, True
    holds = _PAIRS[relation]
    results = {holds(one, other) for one in some for other in others}
    return True in results, False in results


def _compare_strictly(relation: str, one: AbstractValue, other: AbstractValue) -> ComparisonResult:
    """Compare two values strictly: same kind and same value."""
    kinds = one.kinds & other.kinds
    equal = bool(
        kinds & (FALSE | TRUE | NULL | ARRAY | OBJECT)
        or (kinds & NUMBER and _may_relate("==", one, other))
        or (kinds & TEXT and _relate_texts("==", one.texts, other.texts)[0]),
    )
    same = get_single(one)
    differ = not equal or same is None or same != get_single(other)
    fails = EXCEEDS if kinds & (ARRAY | OBJECT) else 0
    return (
        ComparisonResult(equal, differ, fails)
        if relation == "==="
        else ComparisonResult(differ, equal, fails)
    )


def refine(value: AbstractValue, relation: str, other: AbstractValue) -> AbstractValue:
    """Return the values for which a comparison with another value may hold.

    Args:
        value: the values at a path; an absent one is read as null.
        relation: the comparison.
        other: the other side.
    """
    if relation == "===":
        return _refine_same(value, other)
    if relation == "!==":
        return _refine_different(value, other)
    numbers, _ = to_numbers(other)
    kinds = value.kinds & ~(ARRAY | OBJECT)
    if kinds & (FALSE | NULL | ABSENT) and not _may_satisfy(relation, 0.0, numbers, other):
        kinds &= ~(FALSE | NULL | ABSENT)
    if kinds & TRUE and not _may_satisfy(relation, 1.0, numbers, other):
        kinds &= ~TRUE
    result = _restrict_kinds(value, kinds)
    if kinds & NUMBER:
        result = _restrict_interval(result, relation, numbers)
    if kinds & TEXT and other.kinds == TEXT and value.texts is not None and other.texts is not None:
        holds = _PAIRS[relation]
        texts = frozenset(one for one in value.texts if any(holds(one, each) for each in other.texts))
        result = _restrict_kinds(result, result.kinds if texts else result.kinds & ~TEXT)._replace(
            texts=texts,
        )
    return result


def _may_satisfy(relation: str, value: float, numbers: AbstractValue, other: AbstractValue) -> bool:
    """Return True if one number may satisfy the comparison; a comparison with a non-number fails."""
    return bool(other.kinds and numbers.kinds) and _may_relate(
        relation,
        AbstractValue(NUMBER, value, value),
        numbers,
    )


def _restrict_kinds(value: AbstractValue, kinds: int) -> AbstractValue:
    """Restrict a value to some of its kinds."""
    if kinds == value.kinds:
        return value
    has_numbers = kinds & NUMBER
    return AbstractValue(
        kinds,
        value.low if has_numbers else BOTTOM.low,
        value.high if has_numbers else BOTTOM.high,
        value.whole or not has_numbers,
        value.texts if kinds & TEXT else BOTTOM.texts,
        value.array if kinds & ARRAY else None,
        value.object if kinds & OBJECT else None,
    )


def _restrict_interval(value: AbstractValue, relation: str, other: AbstractValue) -> AbstractValue:
    """Restrict the numbers of a value to those for which the relation may hold."""
    low, high, whole = value.low, value.high, value.whole
    if not other.kinds & NUMBER:
        return _restrict_kinds(value, value.kinds & ~NUMBER)
    if relation in {"<=", "==", "==="}:
        high = min(high, other.high)
    if relation in {">=", "==", "==="}:
        low = max(low, other.low)
    if relation == "<" and other.high <= high:
        high = _next_below(other.high, whole=whole)
    if relation == ">" and other.low >= low:
        low = _next_above(other.low, whole=whole)
    if relation == "!=" and other.low == other.high:
        low = _next_above(low, whole=whole) if low == other.low else low
        high = _next_below(high, whole=whole) if high == other.high else high
    if whole and low > -_MAX_EXACT and high < _MAX_EXACT and low <= high:
        low, high = float(math.ceil(low)), float(math.floor(high))
    if low > high:
        return _restrict_kinds(value, value.kinds & ~NUMBER)
    return value if low == value.low and high == value.high else value._replace(low=low, high=high)


def _next_below(bound: float, *, whole: bool) -> float:
    """Return the greatest number below a bound."""
    if whole and abs(bound) < _MAX_EXACT:
        return float(math.ceil(bound) - 1)
    return math.nextafter(bound, -math.inf)


def _next_above(bound: float, *, whole: bool) -> float:
    return 0.0 - _next_below(-bound, whole=whole)


def _refine_same(value: AbstractValue, other: AbstractValue) -> AbstractValue:
    theirs = read_absent_as_null(other).kinds
    kinds = value.kinds & (theirs | (ABSENT if theirs & NULL else 0))
    result = _restrict_kinds(value, kinds)
    if kinds & NUMBER:
        result = _restrict_interval(result, "==", other)
    if kinds & TEXT and value.texts is not None and other.texts is not None:
        common = value.texts & other.texts
        result = _restrict_kinds(result, result.kinds if common else result.kinds & ~TEXT)
        result = result._replace(texts=common) if common else result
    return result


def _refine_different(value: AbstractValue, other: AbstractValue) -> AbstractValue:
    only = get_single(other)
    if only is None:
        return value
    match other.kinds:
        case 1:
            return _restrict_interval(value, "!=", other) if value.kinds & NUMBER else value
        case 16 if value.texts is not None and value.kinds & TEXT:
            texts = value.texts - {only[0]}
            return value._replace(texts=texts) if texts else _restrict_kinds(value, value.kinds & ~TEXT)
        case 8:
            return _restrict_kinds(value, value.kinds & ~(NULL | ABSENT))
        case 2 | 4:
            return _restrict_kinds(value, value.kinds & ~other.kinds)
    return value


def refine_path(
    data: AbstractValue,
    path: Path,
    restrict: Callable[[AbstractValue], AbstractValue],
) -> AbstractValue | None:
    """Restrict the values at a path; None if none is left.

    Only members of objects are refined: an abstract array item represents several items.
    """
    holders: list[AbstractObject] = []
    value = data
    for key in path:
        holder = value.object
        if value.kinds != OBJECT or holder is None or not isinstance(key, str) or key not in holder.fields:
            return data
        holders.append(holder)
        value = holder.fields[key]
    less = restrict(value)
    if not less.kinds:
        return None
    if less == value:
        return data
    for holder, key in zip(reversed(holders), reversed(path), strict=True):
        less = replace_member(holder, str(key), less)
    return less


Split = tuple[AbstractValue | None, AbstractValue | None]
"""Data for which a condition may hold, and data for which it may not; None if impossible."""


def get_plain_path(logic: Any) -> Path | None:
    """Return the path of a variable without a default."""
    if not isinstance(logic, dict) or len(logic) != 1 or "var" not in logic:
        return None
    operand = logic["var"]
    if isinstance(operand, list):
        operand = operand[0] if len(operand) == 1 else None
    return split_variable(operand) if isinstance(operand, str) and operand else None


_ACCUMULATOR = {"var": "accumulator"}
_COUNTING_BODIES: tuple[Any, ...] = ({"+": [_ACCUMULATOR, 1.0]}, {"+": [1.0, _ACCUMULATOR]})


def get_counted_path(logic: Any) -> Path | None:
    """Return the path of an array that the expression counts.

    JSONLogic counts by adding ones in a `reduce`.
    """
    operand = logic.get("reduce") if isinstance(logic, dict) and len(logic) == 1 else None
    if isinstance(operand, list) and len(operand) == 3:  # noqa: PLR2004 - array, body and start
        array, body, start = operand
        if body in _COUNTING_BODIES and type(start) is float and start == 0:
            return get_plain_path(array)
    return None


def _combine_alternatives(parts: list[AbstractValue | None], data: AbstractValue) -> AbstractValue | None:
    """Combine the data of several alternatives; a refinement survives only if one alternative is possible."""
    some = [part for part in parts if part is not None]
    return None if not some else some[0] if len(some) == 1 else data


def _fail(run: AbstractEvaluation) -> Split:
    run.fails |= FAILS
    return None, None


def _and(run: AbstractEvaluation, _name: str, operand: Any, data: AbstractValue) -> Split:
    if not isinstance(operand, list):
        return _fail(run)
    left: AbstractValue | None = data
    falses: list[AbstractValue | None] = []
    for item in operand:
        if left is None:
            break
        left, false = run.split(item, left)
        falses.append(false)
    return left, _combine_alternatives(falses, data)


def _or(run: AbstractEvaluation, _name: str, operand: Any, data: AbstractValue) -> Split:
    if not isinstance(operand, list):
        return _fail(run)
    left: AbstractValue | None = data
    trues: list[AbstractValue | None] = []
    for item in operand:
        if left is None:
            break
        true, left = run.split(item, left)
        trues.append(true)
    return _combine_alternatives(trues, data), left


def _conditional(run: AbstractEvaluation, _name: str, operand: Any, data: AbstractValue) -> Split:
    if not isinstance(operand, list):
        return _fail(run)
    left: AbstractValue | None = data
    trues: list[AbstractValue | None] = []
    falses: list[AbstractValue | None] = []
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
    return _combine_alternatives(trues, data), _combine_alternatives(falses, data)


def _not(run: AbstractEvaluation, _name: str, operand: Any, data: AbstractValue) -> Split:
    true, false = _truth(run, _name, operand, data)
    return false, true


def _truth(run: AbstractEvaluation, _name: str, operand: Any, data: AbstractValue) -> Split:
    if isinstance(operand, list):
        return run.split(operand[0], data) if operand else (None, data)
    return run.split(operand, data)


def _comparison(run: AbstractEvaluation, name: str, operand: Any, data: AbstractValue) -> Split:
    if not isinstance(operand, list) or len(operand) < 2:  # noqa: PLR2004 - two sides
        return _fail(run)
    first, second, *more = operand
    one, other = run.evaluate(first, data), run.evaluate(second, data)
    if not one.kinds or not other.kinds:
        return None, None
    true, false = _compare(run, name, (first, one), (second, other), data)
    for item in more:
        if true is None:
            break
        one, other = other, run.evaluate(item, data)
        if not other.kinds:
            return None, false
        verdict = compare(name, one, other)
        run.fails |= verdict.fails
        true = true if verdict.true else None
        false = data if verdict.false else false
    return true, false


def _compare(
    run: AbstractEvaluation,
    name: str,
    left: tuple[Any, AbstractValue],
    right: tuple[Any, AbstractValue],
    data: AbstractValue,
) -> Split:
    (first, one), (second, other) = left, right
    verdict = compare(name, one, other)
    run.fails |= verdict.fails
    if one.array is not None and other.array is not None:
        run.spend_fuel(MAX_LENGTH)
    result: list[AbstractValue | None] = []
    for possible, relation in ((verdict.true, name), (verdict.false, NEGATED[name])):
        rest: AbstractValue | None = data if possible else None
        for expression, relates, against in ((first, relation, other), (second, SWAPPED[relation], one)):
            if rest is not None:
                rest = _refine_by_comparison(expression, rest, relates, against)
        result.append(rest)
    return result[0], result[1]


def _refine_by_comparison(
    expression: Any,
    data: AbstractValue,
    relation: str,
    other: AbstractValue,
) -> AbstractValue | None:
    """Refine the data by a comparison of an expression, if the expression is a path or counts an array."""
    path = get_plain_path(expression)
    if path is not None:
        return refine_path(data, path, lambda value: refine(value, relation, other))
    counted = get_counted_path(expression)
    if counted is not None:
        return refine_path(data, counted, lambda value: _restrict_length(value, relation, other))
    return data


def _restrict_length(value: AbstractValue, relation: str, other: AbstractValue) -> AbstractValue:
    """Restrict arrays to those whose length satisfies a comparison."""
    array = value.array
    if value.kinds != ARRAY or array is None:
        return value
    lengths = refine(number_range(array.minimum, array.maximum, whole=True), relation, other)
    return array_range(int(lengths.low), int(lengths.high), array.item) if lengths.kinds else BOTTOM


CONDITIONS: dict[str, Callable[[AbstractEvaluation, str, Any, AbstractValue], Split]] = {
    "and": _and,
    "or": _or,
    "if": _conditional,
    "?:": _conditional,
    "!": _not,
    "!!": _truth,
    **dict.fromkeys(NEGATED, _comparison),
}
# Operators that return one of their operands, so their value is more than a truth value.
OPERAND_RETURNING = frozenset({"and", "or", "if", "?:"})
_BOOLEAN = frozenset({*CONDITIONS, "in", "all", "some", "none"} - OPERAND_RETURNING)


def is_boolean(logic: Any) -> bool:
    """Return True if an expression can only evaluate to true or false."""
    return isinstance(logic, dict) and len(logic) == 1 and next(iter(logic)) in _BOOLEAN
