"""JSONLogic coercion of abstract values to truth values and numbers."""

from __future__ import annotations

from peripety.sim._core import CoreError
from peripety.sim._pure.convert import as_number
from peripety.sim.proofs.domain import (
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
    Array,
    Value,
    join,
    literal,
)

__all__ = ["FAILS", "OUTGROWS", "as_numbers", "may_be_false", "may_be_true", "only_false", "only_true"]

# Possible errors, as bits: by kinds of values, or by sizes and work limits.
FAILS = 1
OUTGROWS = 2
_BLANK = frozenset(("",))


def may_be_true(value: Value) -> bool:
    """Return True if some value is truthy."""
    kinds = value.kinds
    return bool(
        kinds & (TRUE | OBJECT)
        or (kinds & NUMBER and (value.low != 0 or value.high != 0))
        or (kinds & TEXT and value.texts != _BLANK)
        or (value.array is not None and value.array.most > 0)
    )


def may_be_false(value: Value) -> bool:
    """Return True if some value is falsy."""
    kinds = value.kinds
    return bool(
        kinds & (FALSE | NULL | ABSENT)
        or (kinds & NUMBER and value.low <= 0 <= value.high)
        or (kinds & TEXT and (value.texts is None or "" in value.texts))
        or (value.array is not None and value.array.least == 0)
    )


def only_true(value: Value) -> Value:
    """Return the truthy values."""
    kinds = value.kinds & ~(FALSE | NULL | ABSENT)
    low, high, texts, array = value.low, value.high, value.texts, value.array
    if kinds & NUMBER:
        low, high = _without_zero(low, high, whole=value.whole)
        kinds, low, high = (kinds, low, high) if low <= high else (kinds & ~NUMBER, BOTTOM.low, BOTTOM.high)
    if kinds & TEXT and texts is not None:
        texts = texts - _BLANK
        kinds = kinds if texts else kinds & ~TEXT
    if array is not None:
        array = Array(max(array.least, 1), array.most, array.item) if array.most else None
        kinds = kinds if array else kinds & ~ARRAY
    return Value(kinds, low, high, value.whole, texts, array, value.object)


def _without_zero(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """Return an interval without zero at its ends; the next number replaces it."""
    step = 1.0 if whole else 5e-324
    return (step if low == 0 else low), (-step if high == 0 else high)


def only_false(value: Value) -> Value:
    """Return the falsy values."""
    kinds = value.kinds & (FALSE | NULL | ABSENT)
    result = Value(kinds)
    if value.kinds & NUMBER and value.low <= 0 <= value.high:
        result = join(result, literal(0.0))
    if value.kinds & TEXT and (value.texts is None or "" in value.texts):
        result = join(result, literal(""))
    if value.array is not None and value.array.least == 0:
        result = join(result, literal([]))
    return result


def as_numbers(value: Value) -> tuple[Value, int]:
    """Convert to numbers; also return the errors of values that are not numeric."""
    if value.kinds == NUMBER:
        return value, 0
    result, fails = Value(value.kinds & NUMBER, value.low, value.high, value.whole), 0
    if value.kinds & (FALSE | NULL | ABSENT):
        result = join(result, literal(0.0))
    if value.kinds & TRUE:
        result = join(result, literal(1.0))
    if value.kinds & (ARRAY | OBJECT):
        fails = FAILS
    if value.kinds & TEXT:
        if value.texts is None:
            return ANY_NUMBER, FAILS
        for text in value.texts:
            try:
                result = join(result, literal(as_number(text)))
            except CoreError:
                fails = FAILS
    return result, fails
