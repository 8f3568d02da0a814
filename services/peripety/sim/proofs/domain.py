"""Abstract domain: a value that over-approximates a set of JSON values.

Every possible value is covered. Bounds of numbers need no outward rounding, because the engine's operations
are monotone in their operands.
"""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

__all__ = [
    "ABSENT",
    "ANY",
    "ANY_NUMBER",
    "ANY_TEXT",
    "ARRAY",
    "BOTTOM",
    "FALSE",
    "FEW",
    "LARGEST",
    "LONGEST",
    "MOST_TEXTS",
    "NULL",
    "NUMBER",
    "OBJECT",
    "TEXT",
    "TRUE",
    "Array",
    "Object",
    "Value",
    "array_of",
    "booleans",
    "clamped",
    "item_of",
    "join",
    "literal",
    "member",
    "member_of",
    "number",
    "present",
    "replaced_member",
    "single",
    "texts_of",
]

LARGEST: Final = sys.float_info.max
LONGEST: Final = 1 << 17
"""More items than any array of a state or of an evaluation can have."""
FEW: Final = 64
"""Maximum number of items that are processed one by one."""
MOST_TEXTS: Final = 16
"""Maximum number of distinct strings in one value."""
_DEEPEST = 12
_INF = float("inf")

# Kinds of values, as bits.
NUMBER: Final = 1
FALSE: Final = 2
TRUE: Final = 4
NULL: Final = 8
TEXT: Final = 16
ARRAY: Final = 32
OBJECT: Final = 64
ABSENT: Final = 128


class Array(NamedTuple):
    """Arrays of `least` … `most` items, each of them an `item` (None: any value)."""

    least: int
    most: int
    item: Value | None


class Object(NamedTuple):
    """Objects: possible values of each field, and of all other keys (None: any value)."""

    fields: dict[str, Value]
    rest: Value | None


class Value(NamedTuple):
    """Over-approximation of a set of JSON values.

    Attributes:
        kinds: possible kinds; `ABSENT` if the value may be missing.
        low: the least number.
        high: the greatest number; less than `low` without any number.
        whole: True if all numbers are integers.
        texts: the strings; None for any.
        array: the arrays.
        object: the objects.
    """

    kinds: int = 0
    low: float = _INF
    high: float = -_INF
    whole: bool = True
    texts: frozenset[str] | None = frozenset()
    array: Array | None = None
    object: Object | None = None


BOTTOM: Final = Value()
"""Empty set of values: the result of an expression that always fails."""
ANY_NUMBER: Final = Value(NUMBER, -LARGEST, LARGEST, whole=False)
ANY_TEXT: Final = Value(TEXT, texts=None)
ANY: Final = Value(
    255, -LARGEST, LARGEST, whole=False, texts=None, array=Array(0, LONGEST, None), object=Object({}, None)
)
"""Any value, or none."""


def number(low: float, high: float, *, whole: bool) -> Value:
    """Return the numbers of an interval."""
    return Value(NUMBER, low, high, whole)


def booleans(*, true: bool, false: bool) -> Value:
    """Return the given truth values."""
    return Value((TRUE if true else 0) | (FALSE if false else 0))


def texts_of(texts: frozenset[str]) -> Value:
    """Return some strings; too many become any string."""
    return Value(TEXT, texts=texts) if 0 < len(texts) <= MOST_TEXTS else ANY_TEXT if texts else BOTTOM


def array_of(least: int, most: int, item: Value | None) -> Value:
    """Return the arrays of a range of lengths."""
    return Value(ARRAY, array=Array(least, min(most, LONGEST), item))


def literal(value: Any) -> Value:
    """Abstract one JSON value; the items of an array are joined."""
    if isinstance(value, float):
        return Value(NUMBER, value, value, value.is_integer())
    if isinstance(value, bool):
        return Value(TRUE if value else FALSE)
    if isinstance(value, str):
        return Value(TEXT, texts=frozenset((value,)))
    if isinstance(value, list):
        item = BOTTOM
        for each in value:
            item = join(item, literal(each))
        return array_of(len(value), len(value), item)
    if isinstance(value, dict):
        fields = {key: literal(item) for key, item in value.items()}
        return Value(OBJECT, object=Object(fields, BOTTOM))
    return Value(NULL)


def join(one: Value, other: Value, depth: int = 0) -> Value:
    """Return the union of two values."""
    if one is other:
        return one
    kinds = one.kinds | other.kinds
    low, high, whole = min(one.low, other.low), max(one.high, other.high), one.whole and other.whole
    if kinds < NULL:
        return Value(kinds, low, high, whole)
    if depth > _DEEPEST:
        return ANY
    texts = None if one.texts is None or other.texts is None else one.texts | other.texts
    return Value(
        kinds,
        low,
        high,
        whole,
        texts if texts is None or len(texts) <= MOST_TEXTS else None,
        _join_arrays(one.array, other.array, depth + 1),
        _join_objects(one.object, other.object, depth + 1),
    )


def _join_arrays(one: Array | None, other: Array | None, depth: int) -> Array | None:
    if one is None or other is None or one is other:
        return other if one is None else one
    item = None if one.item is None or other.item is None else join(one.item, other.item, depth)
    return Array(min(one.least, other.least), max(one.most, other.most), item)


def _join_objects(one: Object | None, other: Object | None, depth: int) -> Object | None:
    if one is None or other is None or one is other:
        return other if one is None else one
    fields = {}
    for key, mine in one.fields.items():
        theirs = other.fields.get(key)
        if theirs is None:
            theirs = member_of(other, key)
        fields[key] = mine if theirs is mine else join(mine, theirs, depth)
    for key in sorted(other.fields.keys() - one.fields.keys()):
        fields[key] = join(member_of(one, key), other.fields[key], depth)
    rest = None if one.rest is None or other.rest is None else join(one.rest, other.rest, depth)
    return Object(fields, rest)


def member_of(holder: Object, key: str) -> Value:
    """Return the possible values of a key of an object, including absence."""
    found = holder.fields.get(key)
    if found is not None:
        return found
    if holder.rest is None:
        return ANY
    return join(holder.rest, Value(ABSENT))


def replaced_member(holder: Object, key: str, value: Value) -> Value:
    """Return the objects with one key replaced."""
    return Value(OBJECT, object=Object({**holder.fields, key: value}, holder.rest))


def item_of(array: Array) -> Value:
    """Return the possible values of an item."""
    return ANY if array.item is None else array.item


def member(value: Value, segment: str | int) -> Value:
    """Return the possible values one step below: at a key of an object or an index of an array."""
    if value.kinds == OBJECT and value.object is not None:
        return member_of(value.object, segment) if isinstance(segment, str) else Value(ABSENT)
    found = BOTTOM
    if value.object is not None and isinstance(segment, str):
        found = member_of(value.object, segment)
    if value.array is not None and isinstance(segment, int) and segment < value.array.most:
        found = join(found, item_of(value.array))
        if segment < value.array.least and value.kinds == ARRAY:
            return found
    return join(found, Value(ABSENT))


def present(value: Value) -> Value:
    """Return the value as it is read: absence becomes null."""
    return value._replace(kinds=value.kinds & ~ABSENT | NULL) if value.kinds & ABSENT else value


def clamped(low: float, high: float, *, whole: bool) -> tuple[Value, bool]:
    """Return the numbers of an interval that a state can hold, and True if some lie beyond."""
    if low >= -LARGEST and high <= LARGEST:
        return Value(NUMBER, low + 0.0, high + 0.0, whole), False
    if low > LARGEST or high < -LARGEST:
        return BOTTOM, True
    return Value(NUMBER, max(low, -LARGEST), min(high, LARGEST), whole), True


def single(value: Value) -> tuple[Any] | None:
    """Return the only scalar of a set of size one, in a tuple; None otherwise."""
    match value.kinds:
        case 1 if value.low == value.high:
            return (value.low,)
        case 2 | 4:
            return (value.kinds == TRUE,)
        case 8:
            return (None,)
        case 16 if value.texts is not None and len(value.texts) == 1:
            return (next(iter(value.texts)),)
    return None
