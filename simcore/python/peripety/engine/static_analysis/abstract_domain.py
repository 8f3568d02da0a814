"""Abstract domain: a value that over-approximates a set of JSON values; and the work budget.

Every possible value is covered. Bounds of numbers need no outward rounding, because the engine's operations
are monotone in their operands.
"""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple


class BudgetSpentError(Exception):
    """The budget is spent; nothing can be claimed."""


class StepBudget:
    """Remaining steps; a step is one expression evaluated or one effect applied."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> None:
        """Spend one step.

        Raises:
            BudgetSpentError: no steps are left.
        """
        self.left -= 1
        if self.left < 0:
            raise BudgetSpentError


MAX_NUMBER: Final = sys.float_info.max
MAX_LENGTH: Final = 1 << 17
"""More items than any array of a state or of an evaluation can have."""
MAX_ENUMERATED: Final = 64
"""Maximum number of items that are processed one by one."""
MAX_TEXTS: Final = 16
"""Maximum number of distinct strings in one value."""
_MAX_DEPTH = 12
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


class AbstractArray(NamedTuple):
    """Arrays of `minimum` … `maximum` items, each of them an `item` (None: any value)."""

    minimum: int
    maximum: int
    item: AbstractValue | None


class AbstractObject(NamedTuple):
    """Objects: possible values of each field, and of all other keys (None: any value)."""

    fields: dict[str, AbstractValue]
    rest: AbstractValue | None


class AbstractValue(NamedTuple):
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
    array: AbstractArray | None = None
    object: AbstractObject | None = None


BOTTOM: Final = AbstractValue()
"""Empty set of values: the result of an expression that always fails."""
ANY_NUMBER: Final = AbstractValue(NUMBER, -MAX_NUMBER, MAX_NUMBER, whole=False)
ANY_TEXT: Final = AbstractValue(TEXT, texts=None)
ANY: Final = AbstractValue(
    255,
    -MAX_NUMBER,
    MAX_NUMBER,
    whole=False,
    texts=None,
    array=AbstractArray(0, MAX_LENGTH, None),
    object=AbstractObject({}, None),
)
"""Any value, or none."""


def number_range(low: float, high: float, *, whole: bool) -> AbstractValue:
    """Return the numbers of an interval."""
    return AbstractValue(NUMBER, low, high, whole)


def boolean_set(*, true: bool, false: bool) -> AbstractValue:
    """Return the given truth values."""
    return AbstractValue((TRUE if true else 0) | (FALSE if false else 0))


def text_set(texts: frozenset[str]) -> AbstractValue:
    """Return some strings; too many become any string."""
    return AbstractValue(TEXT, texts=texts) if 0 < len(texts) <= MAX_TEXTS else ANY_TEXT if texts else BOTTOM


def array_range(least: int, most: int, item: AbstractValue | None) -> AbstractValue:
    """Return the arrays of a range of lengths."""
    return AbstractValue(ARRAY, array=AbstractArray(least, min(most, MAX_LENGTH), item))


def from_literal(value: Any) -> AbstractValue:
    """Abstract one JSON value; the items of an array are joined."""
    if isinstance(value, float):
        return AbstractValue(NUMBER, value, value, value.is_integer())
    if isinstance(value, bool):
        return AbstractValue(TRUE if value else FALSE)
    if isinstance(value, str):
        return AbstractValue(TEXT, texts=frozenset((value,)))
    if isinstance(value, list):
        item = BOTTOM
        for each in value:
            item = join(item, from_literal(each))
        return array_range(len(value), len(value), item)
    if isinstance(value, dict):
        fields = {key: from_literal(item) for key, item in value.items()}
        return AbstractValue(OBJECT, object=AbstractObject(fields, BOTTOM))
    return AbstractValue(NULL)


def join(one: AbstractValue, other: AbstractValue, depth: int = 0) -> AbstractValue:
    """Return the union of two values."""
    if one is other:
        return one
    kinds = one.kinds | other.kinds
    low, high, whole = min(one.low, other.low), max(one.high, other.high), one.whole and other.whole
    if kinds < NULL:
        return AbstractValue(kinds, low, high, whole)
    if depth > _MAX_DEPTH:
        return ANY
    texts = None if one.texts is None or other.texts is None else one.texts | other.texts
    return AbstractValue(
        kinds,
        low,
        high,
        whole,
        texts if texts is None or len(texts) <= MAX_TEXTS else None,
        _join_arrays(one.array, other.array, depth + 1),
        _join_objects(one.object, other.object, depth + 1),
    )


def _join_arrays(one: AbstractArray | None, other: AbstractArray | None, depth: int) -> AbstractArray | None:
    if one is None or other is None or one is other:
        return other if one is None else one
    item = None if one.item is None or other.item is None else join(one.item, other.item, depth)
    return AbstractArray(min(one.minimum, other.minimum), max(one.maximum, other.maximum), item)


def _join_objects(
    one: AbstractObject | None,
    other: AbstractObject | None,
    depth: int,
) -> AbstractObject | None:
    if one is None or other is None or one is other:
        return other if one is None else one
    fields = {}
    for key, mine in one.fields.items():
        theirs = other.fields.get(key)
        if theirs is None:
            theirs = get_member(other, key)
        fields[key] = mine if theirs is mine else join(mine, theirs, depth)
    for key in sorted(other.fields.keys() - one.fields.keys()):
        fields[key] = join(get_member(one, key), other.fields[key], depth)
    rest = None if one.rest is None or other.rest is None else join(one.rest, other.rest, depth)
    return AbstractObject(fields, rest)


def get_member(holder: AbstractObject, key: str) -> AbstractValue:
    """Return the possible values of a key of an object, including absence."""
    found = holder.fields.get(key)
    if found is not None:
        return found
    if holder.rest is None:
        return ANY
    return join(holder.rest, AbstractValue(ABSENT))


def replace_member(holder: AbstractObject, key: str, value: AbstractValue) -> AbstractValue:
    """Return the objects with one key replaced."""
    return AbstractValue(OBJECT, object=AbstractObject({**holder.fields, key: value}, holder.rest))


def get_item(array: AbstractArray) -> AbstractValue:
    """Return the possible values of an item."""
    return ANY if array.item is None else array.item


def get_child(value: AbstractValue, segment: str | int) -> AbstractValue:
    """Return the possible values one step below: at a key of an object or an index of an array."""
    if value.kinds == OBJECT and value.object is not None:
        return get_member(value.object, segment) if isinstance(segment, str) else AbstractValue(ABSENT)
    found = BOTTOM
    if value.object is not None and isinstance(segment, str):
        found = get_member(value.object, segment)
    if value.array is not None and isinstance(segment, int) and segment < value.array.maximum:
        found = join(found, get_item(value.array))
        if segment < value.array.minimum and value.kinds == ARRAY:
            return found
    return join(found, AbstractValue(ABSENT))


def read_absent_as_null(value: AbstractValue) -> AbstractValue:
    """Return the value as it is read: absence becomes null."""
    return value._replace(kinds=value.kinds & ~ABSENT | NULL) if value.kinds & ABSENT else value


def clamp(low: float, high: float, *, whole: bool) -> tuple[AbstractValue, bool]:
    """Return the numbers of an interval that a state can hold, and True if some lie beyond."""
    if low >= -MAX_NUMBER and high <= MAX_NUMBER:
        return AbstractValue(NUMBER, low + 0.0, high + 0.0, whole), False
    if low > MAX_NUMBER or high < -MAX_NUMBER:
        return BOTTOM, True
    return AbstractValue(NUMBER, max(low, -MAX_NUMBER), min(high, MAX_NUMBER), whole), True


def get_single(value: AbstractValue) -> tuple[Any] | None:
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
