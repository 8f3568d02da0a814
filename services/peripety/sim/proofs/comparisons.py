"""Comparisons of abstract values: the possible results, and the values for which a comparison may hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.sim.proofs.domain import (
    ABSENT,
    ARRAY,
    BOTTOM,
    FALSE,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    TRUE,
    Value,
    present,
    single,
)
from peripety.sim.proofs.readings import OUTGROWS, as_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FLIPPED", "OPPOSITE", "Verdict", "compared", "kept"]

OPPOSITE = {
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
FLIPPED = {
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


class Verdict(NamedTuple):
    """Possible results of a comparison: it may hold, it may not hold, and the errors it may raise."""

    true: bool
    false: bool
    fails: int


def compared(relation: str, one: Value, other: Value) -> Verdict:
    """Compare two values that are present."""
    if one.kinds == NUMBER == other.kinds:
        return Verdict(
            _between(relation, one, other),
            _between(OPPOSITE[relation], one, other),
            0,
        )
    if relation in {"===", "!=="}:
        return _strictly(relation, one, other)
    true = false = False
    fails = 0
    if one.kinds & TEXT and other.kinds & TEXT:
        true, false = _between_texts(relation, one.texts, other.texts)
    if one.kinds != TEXT or other.kinds != TEXT:
        mine, fails_here = as_numbers(one)
        theirs, fails_there = as_numbers(other)
        fails = fails_here | fails_there
        if mine.kinds and theirs.kinds:
            true = true or _between(relation, mine, theirs)
            false = false or _between(OPPOSITE[relation], mine, theirs)
    return Verdict(true, false, fails)


def _between(relation: str, one: Value, other: Value) -> bool:
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


def _between_texts(
    relation: str, some: frozenset[str] | None, others: frozenset[str] | None
) -> tuple[bool, bool]:
    if some is None or others is None:
        return True, True
    holds = _PAIRS[relation]
    results = {holds(one, other) for one in some for other in others}
    return True in results, False in results


def _strictly(relation: str, one: Value, other: Value) -> Verdict:
    """Compare two values strictly: same kind and same value."""
    kinds = one.kinds & other.kinds
    equal = bool(
        kinds & (FALSE | TRUE | NULL | ARRAY | OBJECT)
        or (kinds & NUMBER and _between("==", one, other))
        or (kinds & TEXT and _between_texts("==", one.texts, other.texts)[0])
    )
    same = single(one)
    differ = not equal or same is None or same != single(other)
    fails = OUTGROWS if kinds & (ARRAY | OBJECT) else 0
    return Verdict(equal, differ, fails) if relation == "===" else Verdict(differ, equal, fails)


def kept(value: Value, relation: str, other: Value) -> Value:
    """Return the values for which a comparison with another value may hold.

    Args:
        value: the values at a path; an absent one is read as null.
        relation: the comparison.
        other: the other side.
    """
    if relation == "===":
        return _kept_same(value, other)
    if relation == "!==":
        return _kept_different(value, other)
    numbers, _ = as_numbers(other)
    kinds = value.kinds & ~(ARRAY | OBJECT)
    if kinds & (FALSE | NULL | ABSENT) and not _may_stand(relation, 0.0, numbers, other):
        kinds &= ~(FALSE | NULL | ABSENT)
    if kinds & TRUE and not _may_stand(relation, 1.0, numbers, other):
        kinds &= ~TRUE
    result = _with_kinds(value, kinds)
    if kinds & NUMBER:
        result = _interval(result, relation, numbers)
    if kinds & TEXT and other.kinds == TEXT and value.texts is not None and other.texts is not None:
        holds = _PAIRS[relation]
        texts = frozenset(one for one in value.texts if any(holds(one, each) for each in other.texts))
        result = _with_kinds(result, result.kinds if texts else result.kinds & ~TEXT)._replace(texts=texts)
    return result


def _may_stand(relation: str, value: float, numbers: Value, other: Value) -> bool:
    """Return True if one number may satisfy the comparison; a comparison with a non-number fails."""
    return bool(other.kinds and numbers.kinds) and _between(relation, Value(NUMBER, value, value), numbers)


def _with_kinds(value: Value, kinds: int) -> Value:
    """Restrict a value to some of its kinds."""
    if kinds == value.kinds:
        return value
    has_numbers = kinds & NUMBER
    return Value(
        kinds,
        value.low if has_numbers else BOTTOM.low,
        value.high if has_numbers else BOTTOM.high,
        value.whole or not has_numbers,
        value.texts if kinds & TEXT else BOTTOM.texts,
        value.array if kinds & ARRAY else None,
        value.object if kinds & OBJECT else None,
    )


def _interval(value: Value, relation: str, other: Value) -> Value:
    """Restrict the numbers of a value to those for which the relation may hold."""
    low, high, whole = value.low, value.high, value.whole
    if not other.kinds & NUMBER:
        return _with_kinds(value, value.kinds & ~NUMBER)
    if relation in {"<=", "==", "==="}:
        high = min(high, other.high)
    if relation in {">=", "==", "==="}:
        low = max(low, other.low)
    if relation == "<" and other.high <= high:
        high = _below(other.high, whole=whole)
    if relation == ">" and other.low >= low:
        low = _above(other.low, whole=whole)
    if relation == "!=" and other.low == other.high:
        low = _above(low, whole=whole) if low == other.low else low
        high = _below(high, whole=whole) if high == other.high else high
    if whole and low > -_MAX_EXACT and high < _MAX_EXACT and low <= high:
        low, high = float(math.ceil(low)), float(math.floor(high))
    if low > high:
        return _with_kinds(value, value.kinds & ~NUMBER)
    return value if low == value.low and high == value.high else value._replace(low=low, high=high)


def _below(bound: float, *, whole: bool) -> float:
    """Return the greatest number below a bound."""
    if whole and abs(bound) < _MAX_EXACT:
        return float(math.ceil(bound) - 1)
    return math.nextafter(bound, -math.inf)


def _above(bound: float, *, whole: bool) -> float:
    return 0.0 - _below(-bound, whole=whole)


def _kept_same(value: Value, other: Value) -> Value:
    theirs = present(other).kinds
    kinds = value.kinds & (theirs | (ABSENT if theirs & NULL else 0))
    result = _with_kinds(value, kinds)
    if kinds & NUMBER:
        result = _interval(result, "==", other)
    if kinds & TEXT and value.texts is not None and other.texts is not None:
        common = value.texts & other.texts
        result = _with_kinds(result, result.kinds if common else result.kinds & ~TEXT)
        result = result._replace(texts=common) if common else result
    return result


def _kept_different(value: Value, other: Value) -> Value:
    only = single(other)
    if only is None:
        return value
    match other.kinds:
        case 1:
            return _interval(value, "!=", other) if value.kinds & NUMBER else value
        case 16 if value.texts is not None and value.kinds & TEXT:
            texts = value.texts - {only[0]}
            return value._replace(texts=texts) if texts else _with_kinds(value, value.kinds & ~TEXT)
        case 8:
            return _with_kinds(value, value.kinds & ~(NULL | ABSENT))
        case 2 | 4:
            return _with_kinds(value, value.kinds & ~other.kinds)
    return value
