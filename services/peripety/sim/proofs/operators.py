"""Value operators of JSONLogic over abstract data, one function each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim.proofs.arithmetic import ARITHMETIC
from peripety.sim.proofs.conditions import Split, counted_path, is_boolean
from peripety.sim.proofs.domain import (
    ABSENT,
    ANY,
    ANY_NUMBER,
    ARRAY,
    BOTTOM,
    FALSE,
    FEW,
    LONGEST,
    NULL,
    OBJECT,
    TEXT,
    TRUE,
    Array,
    Object,
    Value,
    array_of,
    booleans,
    item_of,
    join,
    literal,
    number,
    present,
    texts_of,
)
from peripety.sim.proofs.readings import (
    FAILS,
    OUTGROWS,
    may_be_false,
    may_be_true,
    only_false,
    only_true,
)
from peripety.sim.proofs.textual import TEXTUAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim.proofs.evaluation import Evaluation

__all__ = ["OPERATIONS"]

_NULL = literal(None)
_EMPTY = literal([])
# Fuel for counting one item: an addition of two operands.
_STEPS_TO_COUNT = 3
_BLANK = frozenset(("",))


# --- data ---


def _var(run: Evaluation, operand: Any, data: Value) -> Value:
    items = operand if isinstance(operand, list) else [operand]
    arguments = run.arguments(operand, data)
    found = run.variable(items[0] if items else None, data)
    if not found.kinds & ABSENT:
        return found
    default = arguments[1] if len(arguments) > 1 else _NULL
    if not default.kinds:
        return BOTTOM
    there = found._replace(kinds=found.kinds & ~ABSENT)
    return join(there, default) if there.kinds else default


def _paths(run: Evaluation, paths: Any, data: Value) -> Value:
    """Return the paths at which nothing may be found."""
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        run.fails |= FAILS | OUTGROWS
        return array_of(0, LONGEST, None)
    least = most = 0
    missing = set()
    for path in paths:
        run.burn(1 + len(path))
        found = run.variable(path, data)
        blank = found.kinds & TEXT and (found.texts is None or "" in found.texts)
        if blank or found.kinds & (ABSENT | NULL):
            most += 1
            missing.add(path)
            least += not found.kinds & ~(ABSENT | NULL) or (found.kinds == TEXT and found.texts == _BLANK)
    return array_of(least, most, texts_of(frozenset(missing)))


def _missing(run: Evaluation, operand: Any, data: Value) -> Value:
    items = operand if isinstance(operand, list) else [operand]
    run.arguments(operand, data)
    return _paths(run, items[0] if items and isinstance(items[0], list) else items, data)


def _missing_some(run: Evaluation, operand: Any, data: Value) -> Value:
    if not isinstance(operand, list) or len(operand) != 2:  # noqa: PLR2004 - a number and paths
        return run.fail(FAILS)
    run.arguments(operand, data)
    needed, paths = operand
    found = _paths(run, paths, data)
    array = found.array
    if not isinstance(needed, float) or array is None or not isinstance(paths, list):
        run.fails |= FAILS
        return array_of(0, LONGEST, None)
    enough_surely, enough_maybe = len(paths) - array.most >= needed, len(paths) - array.least >= needed
    if enough_surely:
        return _EMPTY
    return join(found, _EMPTY) if enough_maybe else found


# --- control ---


def _and(run: Evaluation, operand: Any, data: Value) -> Value:
    return _first(run, operand, data, stops_at=False)


def _or(run: Evaluation, operand: Any, data: Value) -> Value:
    return _first(run, operand, data, stops_at=True)


def _first(run: Evaluation, operand: Any, data: Value, *, stops_at: bool) -> Value:
    """Evaluate `and` or `or`: the first operand with the stopping truth value, or the last one."""
    if not isinstance(operand, list):
        return run.fail(FAILS)
    if not operand:
        return booleans(true=False, false=True)
    result = BOTTOM
    for item in operand[:-1]:
        if is_boolean(item):
            true, false = run.split(item, data)
            stops, goes_on = (true, false) if stops_at else (false, true)
            found = booleans(true=stops_at, false=not stops_at) if stops is not None else BOTTOM
        else:
            value = run.value(item, data)
            stops_here, passes = (may_be_true, may_be_false) if stops_at else (may_be_false, may_be_true)
            found = (only_true if stops_at else only_false)(value) if stops_here(value) else BOTTOM
            goes_on = data if passes(value) else None
        result = join(result, found)
        if goes_on is None:
            return result
        data = goes_on
    return join(result, run.value(operand[-1], data))


def _if(run: Evaluation, operand: Any, data: Value) -> Value:
    if not isinstance(operand, list):
        return run.fail(FAILS)
    result = BOTTOM
    for condition, branch in zip(operand[:-1:2], operand[1::2], strict=False):
        true, false = run.split(condition, data)
        if true is not None:
            result = join(result, run.value(branch, true))
        if false is None:
            return result
        data = false
    return join(result, run.value(operand[-1], data) if len(operand) % 2 else _NULL)


# --- arithmetic ---


def _arithmetic(name: str) -> Callable[[Evaluation, Any, Value], Value]:
    work = ARITHMETIC[name]

    def operator(run: Evaluation, operand: Any, data: Value) -> Value:
        values = run.spread(operand, data)
        if values is None:
            run.fails |= FAILS | OUTGROWS
            return ANY_NUMBER
        if not all(value.kinds for value in values):
            return BOTTOM
        result, fails = work(values)
        run.fails |= fails
        return result

    return operator


# --- arrays ---


def _elements(run: Evaluation, operand: Any, data: Value, *, missing_is_empty: bool) -> Array | None:
    """Return the arrays of an iterator; None if it always fails."""
    if not isinstance(operand, list) or len(operand) < 2:  # noqa: PLR2004 - an array and a body
        run.fail(FAILS)
        return None
    value = run.value(operand[0], data)
    array = value.array
    if value.kinds & NULL and missing_is_empty and operand[0] is not None:
        array = Array(0, array.most, array.item) if array else _EMPTY.array
        value = value._replace(kinds=value.kinds & ~NULL)
    if value.kinds & ~ARRAY:
        run.fails |= FAILS
    return array


def _body(run: Evaluation, logic: Any, array: Array) -> Value:
    """Return the possible results of an iterator's body."""
    if not array.most:
        return BOTTOM
    value: Value = run.repeated(array.most, lambda: run.value(logic, present(item_of(array))))
    return value


def _test(run: Evaluation, logic: Any, array: Array) -> Split:
    """Split the items by a condition."""
    if not array.most:
        return None, None
    both: Split = run.repeated(array.most, lambda: run.split(logic, present(item_of(array))))
    return both


def _map(run: Evaluation, operand: Any, data: Value) -> Value:
    array = _elements(run, operand, data, missing_is_empty=True)
    if array is None:
        return BOTTOM
    value = _body(run, operand[1], array)
    if not value.kinds:
        return _EMPTY if array.least == 0 else BOTTOM
    return run.made(array_of(array.least, array.most, value))


def _filter(run: Evaluation, operand: Any, data: Value) -> Value:
    array = _elements(run, operand, data, missing_is_empty=True)
    if array is None or operand[1] is None:
        return run.fail(FAILS)
    true, false = _test(run, operand[1], array)
    if true is None:
        return _EMPTY if array.least == 0 or false is not None else BOTTOM
    least = array.least if false is None else 0
    run.fails |= OUTGROWS if array.most > FEW else 0
    return array_of(least, array.most, array.item)


def _reduce(run: Evaluation, operand: Any, data: Value) -> Value:
    array = _elements(run, operand, data, missing_is_empty=True)
    if array is None or len(operand) != 3:  # noqa: PLR2004 - the start is required in a scenario
        return run.fail(FAILS)
    if counted_path({"reduce": operand}) is not None:
        run.burn(_STEPS_TO_COUNT * array.most)
        return number(array.least, array.most, whole=True)
    total = run.value(operand[2], data)
    result = total if array.least == 0 else BOTTOM

    def step() -> Value:
        current = present(item_of(array))
        return run.value(operand[1], _record({"current": current, "accumulator": total}))

    for done in range(1, array.most + 1):
        before, total = total, run.repeated(array.most, step) if total.kinds else BOTTOM
        if done >= array.least:
            result = join(result, total)
        if total in (before, BOTTOM):
            return join(result, total)
        if done > FEW:
            run.fails |= FAILS | OUTGROWS
            return present(ANY)
    return result


def _record(fields: dict[str, Value]) -> Value:
    return Value(OBJECT, object=Object(fields, BOTTOM))


def _quantified(run: Evaluation, operand: Any, data: Value) -> Value:
    """Return the possible results of `all` or `some`."""
    array = _elements(run, operand, data, missing_is_empty=False)
    if array is None:
        return BOTTOM
    true, false = _test(run, operand[1], array)
    return booleans(true=true is not None, false=array.least == 0 or false is not None)


def _none(run: Evaluation, operand: Any, data: Value) -> Value:
    kinds = _quantified(run, operand, data).kinds
    return booleans(true=bool(kinds & FALSE), false=bool(kinds & TRUE))


def _merge(run: Evaluation, operand: Any, data: Value) -> Value:
    least = most = 0
    item = BOTTOM
    for value in run.arguments(operand, data):
        if not value.kinds:
            return BOTTOM
        sizes = []
        if value.array is not None:
            sizes += [value.array.least, value.array.most]
            item = join(item, present(item_of(value.array))) if value.array.most else item
        if value.kinds & ~ARRAY:
            sizes.append(1)
            item = join(item, value._replace(kinds=value.kinds & ~ARRAY, array=None))
        least, most = least + min(sizes), most + max(sizes)
    return run.made(array_of(least, most, item))


OPERATIONS: dict[str, Callable[[Evaluation, Any, Value], Value]] = {
    "var": _var,
    "missing": _missing,
    "missing_some": _missing_some,
    "if": _if,
    "?:": _if,
    "and": _and,
    "or": _or,
    **{name: _arithmetic(name) for name in ARITHMETIC},
    "map": _map,
    "filter": _filter,
    "reduce": _reduce,
    "all": _quantified,
    "some": _quantified,
    "none": _none,
    "merge": _merge,
    **TEXTUAL,
}
"""Operators that return values. Comparisons and negations are in `CONDITIONS`."""
