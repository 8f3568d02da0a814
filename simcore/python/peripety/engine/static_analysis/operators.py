"""Operators of JSONLogic over abstract data, one function each, including string operators and `in`."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.jsonlogic_operators import cut_text, to_text
from peripety.engine.backend_protocol import EngineError
from peripety.engine.static_analysis.abstract_domain import (
    ABSENT,
    ANY,
    ANY_NUMBER,
    ANY_TEXT,
    ARRAY,
    BOTTOM,
    FALSE,
    MAX_ENUMERATED,
    MAX_LENGTH,
    MAX_TEXTS,
    NULL,
    OBJECT,
    TEXT,
    TRUE,
    AbstractArray,
    AbstractObject,
    AbstractValue,
    array_range,
    boolean_set,
    from_literal,
    get_item,
    get_single,
    join,
    number_range,
    read_absent_as_null,
    text_set,
)
from peripety.engine.static_analysis.arithmetic import (
    ARITHMETIC,
    EXCEEDS,
    FAILS,
    may_be_false,
    may_be_true,
    restrict_to_false,
    restrict_to_true,
)
from peripety.engine.static_analysis.conditions import Split, compare, get_counted_path, is_boolean

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine.static_analysis.evaluation import AbstractEvaluation


def _in(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    values = run.evaluate_arguments(operand, data)
    if len(values) < 2 or not isinstance(operand, list):  # noqa: PLR2004 - needle and haystack
        return run.fail(FAILS)
    needle, haystack = values[0], values[1]
    if not needle.kinds or not haystack.kinds:
        return BOTTOM
    true = False
    false = bool(haystack.kinds & ~(ARRAY | TEXT)) or bool(haystack.kinds & TEXT and needle.kinds != TEXT)
    if haystack.array is not None:
        item = read_absent_as_null(get_item(haystack.array))
        run.spend_fuel(haystack.array.maximum * (MAX_ENUMERATED if needle.array or needle.object else 1))
        same = compare("===", needle, item) if haystack.array.maximum else None
        run.fails |= same.fails if same else 0
        true = same is not None and same.true
        false = false or same is None or same.false or haystack.array.minimum == 0
    if haystack.kinds & needle.kinds & TEXT:
        if needle.texts is None or haystack.texts is None:
            return _unknown_membership(run, haystack)
        run.spend_fuel(max(map(len, haystack.texts), default=0) // 1024)
        found = {one in other for one in needle.texts for other in haystack.texts}
        true, false = true or True in found, false or False in found
    return boolean_set(true=true, false=false)


def _unknown_membership(run: AbstractEvaluation, haystack: AbstractValue) -> AbstractValue:
    if haystack.texts is None:
        run.spend_fuel(MAX_ENUMERATED)  # a step for each 1,024 characters of a text of 64 KiB
    return boolean_set(true=True, false=True)


def _cat(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    values = run.expand_arguments(operand, data)
    if values is None:
        run.fails |= FAILS | EXCEEDS
        return ANY_TEXT
    parts: list[list[str]] = []
    known = True
    for value in values:
        if not value.kinds or value.kinds == OBJECT:
            return run.fail(FAILS)
        if value.kinds & OBJECT or value.array is not None:
            run.fails |= FAILS | EXCEEDS
            known = False
        options = _possible_texts(value)
        known = known and options is not None
        parts.append(options or [])
        if value.kinds & TEXT and value.texts is None:
            run.fails |= EXCEEDS
    if not known:
        return ANY_TEXT
    texts = set()
    for chosen in product(*parts):
        texts.add("".join(chosen))
        if len(texts) > MAX_TEXTS:
            break
    run.spend_output(sum(max(map(len, options)) for options in parts))
    return text_set(frozenset(texts))


def _possible_texts(value: AbstractValue) -> list[str] | None:
    """Return the possible texts of a value, if they are few."""
    if value.kinds == TEXT:
        return None if value.texts is None else sorted(value.texts)
    only = get_single(value)
    return None if only is None else [to_text(only[0])]


def _substr(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    values = run.evaluate_arguments(operand, data)
    if len(values) < 2 or not all(value.kinds for value in values):  # noqa: PLR2004 - a text and a position
        return run.fail(FAILS)
    only = [get_single(value) for value in values]
    if all(only):
        source, *cut = [each[0] for each in only if each]
        try:
            text = to_text(source)
            cut_out = cut_text(text, cut[0], cut[1] if len(cut) > 1 else None)
        except EngineError:
            return run.fail(FAILS)
        run.spend_fuel(len(text) // 1024)
        run.spend_output(len(cut_out))
        return from_literal(cut_out)
    run.fails |= FAILS | EXCEEDS
    return ANY_TEXT


STRING_OPERATIONS: dict[str, Callable[[AbstractEvaluation, Any, AbstractValue], AbstractValue]] = {
    "in": _in,
    "cat": _cat,
    "substr": _substr,
}
"""Operators `in`, `cat` and `substr`."""


_NULL = from_literal(None)
_EMPTY = from_literal([])
# Fuel for counting one item: an addition of two operands.
_STEPS_TO_COUNT = 3
_BLANK = frozenset(("",))


# --- data ---


def _var(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    items = operand if isinstance(operand, list) else [operand]
    arguments = run.evaluate_arguments(operand, data)
    found = run.look_up(items[0] if items else None, data)
    if not found.kinds & ABSENT:
        return found
    default = arguments[1] if len(arguments) > 1 else _NULL
    if not default.kinds:
        return BOTTOM
    there = found._replace(kinds=found.kinds & ~ABSENT)
    return join(there, default) if there.kinds else default


def _find_missing_paths(run: AbstractEvaluation, paths: Any, data: AbstractValue) -> AbstractValue:
    """Return the paths at which nothing may be found."""
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        run.fails |= FAILS | EXCEEDS
        return array_range(0, MAX_LENGTH, None)
    least = most = 0
    missing = set()
    for path in paths:
        run.spend_fuel(1 + len(path))
        found = run.look_up(path, data)
        blank = found.kinds & TEXT and (found.texts is None or "" in found.texts)
        if blank or found.kinds & (ABSENT | NULL):
            most += 1
            missing.add(path)
            least += not found.kinds & ~(ABSENT | NULL) or (found.kinds == TEXT and found.texts == _BLANK)
    return array_range(least, most, text_set(frozenset(missing)))


def _missing(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    items = operand if isinstance(operand, list) else [operand]
    run.evaluate_arguments(operand, data)
    return _find_missing_paths(run, items[0] if items and isinstance(items[0], list) else items, data)


def _missing_some(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    if not isinstance(operand, list) or len(operand) != 2:  # noqa: PLR2004 - a number and paths
        return run.fail(FAILS)
    run.evaluate_arguments(operand, data)
    needed, paths = operand
    found = _find_missing_paths(run, paths, data)
    array = found.array
    if not isinstance(needed, float) or array is None or not isinstance(paths, list):
        run.fails |= FAILS
        return array_range(0, MAX_LENGTH, None)
    enough_surely, enough_maybe = len(paths) - array.maximum >= needed, len(paths) - array.minimum >= needed
    if enough_surely:
        return _EMPTY
    return join(found, _EMPTY) if enough_maybe else found


# --- control ---


def _and(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    return _short_circuit(run, operand, data, stops_at=False)


def _or(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    return _short_circuit(run, operand, data, stops_at=True)


def _short_circuit(
    run: AbstractEvaluation,
    operand: Any,
    data: AbstractValue,
    *,
    stops_at: bool,
) -> AbstractValue:
    """Evaluate `and` or `or`: the first operand with the stopping truth value, or the last one."""
    if not isinstance(operand, list):
        return run.fail(FAILS)
    if not operand:
        return boolean_set(true=False, false=True)
    result = BOTTOM
    for item in operand[:-1]:
        if is_boolean(item):
            true, false = run.split(item, data)
            stops, goes_on = (true, false) if stops_at else (false, true)
            found = boolean_set(true=stops_at, false=not stops_at) if stops is not None else BOTTOM
        else:
            value = run.evaluate(item, data)
            stops_here, passes = (may_be_true, may_be_false) if stops_at else (may_be_false, may_be_true)
            found = (
                (restrict_to_true if stops_at else restrict_to_false)(value) if stops_here(value) else BOTTOM
            )
            goes_on = data if passes(value) else None
        result = join(result, found)
        if goes_on is None:
            return result
        data = goes_on
    return join(result, run.evaluate(operand[-1], data))


def _if(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    if not isinstance(operand, list):
        return run.fail(FAILS)
    result = BOTTOM
    for condition, branch in zip(operand[:-1:2], operand[1::2], strict=False):
        true, false = run.split(condition, data)
        if true is not None:
            result = join(result, run.evaluate(branch, true))
        if false is None:
            return result
        data = false
    return join(result, run.evaluate(operand[-1], data) if len(operand) % 2 else _NULL)


# --- arithmetic ---


def _make_arithmetic(name: str) -> Callable[[AbstractEvaluation, Any, AbstractValue], AbstractValue]:
    work = ARITHMETIC[name]

    def operator(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
        values = run.expand_arguments(operand, data)
        if values is None:
            run.fails |= FAILS | EXCEEDS
            return ANY_NUMBER
        if not all(value.kinds for value in values):
            return BOTTOM
        result, fails = work(values)
        run.fails |= fails
        return result

    return operator


# --- arrays ---


def _get_elements(
    run: AbstractEvaluation,
    operand: Any,
    data: AbstractValue,
    *,
    missing_is_empty: bool,
) -> AbstractArray | None:
    """Return the arrays of an iterator; None if it always fails."""
    if not isinstance(operand, list) or len(operand) < 2:  # noqa: PLR2004 - an array and a body
        run.fail(FAILS)
        return None
    value = run.evaluate(operand[0], data)
    array = value.array
    if value.kinds & NULL and missing_is_empty and operand[0] is not None:
        array = AbstractArray(0, array.maximum, array.item) if array else _EMPTY.array
        value = value._replace(kinds=value.kinds & ~NULL)
    if value.kinds & ~ARRAY:
        run.fails |= FAILS
    return array


def _evaluate_body(run: AbstractEvaluation, logic: Any, array: AbstractArray) -> AbstractValue:
    """Return the possible results of an iterator's body."""
    if not array.maximum:
        return BOTTOM
    value: AbstractValue = run.repeat(
        array.maximum,
        lambda: run.evaluate(logic, read_absent_as_null(get_item(array))),
    )
    return value


def _split_items(run: AbstractEvaluation, logic: Any, array: AbstractArray) -> Split:
    """Split the items by a condition."""
    if not array.maximum:
        return None, None
    both: Split = run.repeat(array.maximum, lambda: run.split(logic, read_absent_as_null(get_item(array))))
    return both


def _map(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    array = _get_elements(run, operand, data, missing_is_empty=True)
    if array is None:
        return BOTTOM
    value = _evaluate_body(run, operand[1], array)
    if not value.kinds:
        return _EMPTY if array.minimum == 0 else BOTTOM
    return run.charge_array(array_range(array.minimum, array.maximum, value))


def _filter(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    array = _get_elements(run, operand, data, missing_is_empty=True)
    if array is None or operand[1] is None:
        return run.fail(FAILS)
    true, false = _split_items(run, operand[1], array)
    if true is None:
        return _EMPTY if array.minimum == 0 or false is not None else BOTTOM
    least = array.minimum if false is None else 0
    run.fails |= EXCEEDS if array.maximum > MAX_ENUMERATED else 0
    return array_range(least, array.maximum, array.item)


def _reduce(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    array = _get_elements(run, operand, data, missing_is_empty=True)
    if array is None or len(operand) != 3:  # noqa: PLR2004 - the start is required in a scenario
        return run.fail(FAILS)
    if get_counted_path({"reduce": operand}) is not None:
        run.spend_fuel(_STEPS_TO_COUNT * array.maximum)
        return number_range(array.minimum, array.maximum, whole=True)
    total = run.evaluate(operand[2], data)
    result = total if array.minimum == 0 else BOTTOM

    def step() -> AbstractValue:
        current = read_absent_as_null(get_item(array))
        return run.evaluate(operand[1], _make_object({"current": current, "accumulator": total}))

    for done in range(1, array.maximum + 1):
        before, total = total, run.repeat(array.maximum, step) if total.kinds else BOTTOM
        if done >= array.minimum:
            result = join(result, total)
        if total in (before, BOTTOM):
            return join(result, total)
        if done > MAX_ENUMERATED:
            run.fails |= FAILS | EXCEEDS
            return read_absent_as_null(ANY)
    return result


def _make_object(fields: dict[str, AbstractValue]) -> AbstractValue:
    return AbstractValue(OBJECT, object=AbstractObject(fields, BOTTOM))


def _quantify(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    """Return the possible results of `all` or `some`."""
    array = _get_elements(run, operand, data, missing_is_empty=False)
    if array is None:
        return BOTTOM
    true, false = _split_items(run, operand[1], array)
    return boolean_set(true=true is not None, false=array.minimum == 0 or false is not None)


def _none(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    kinds = _quantify(run, operand, data).kinds
    return boolean_set(true=bool(kinds & FALSE), false=bool(kinds & TRUE))


def _merge(run: AbstractEvaluation, operand: Any, data: AbstractValue) -> AbstractValue:
    least = most = 0
    item = BOTTOM
    for value in run.evaluate_arguments(operand, data):
        if not value.kinds:
            return BOTTOM
        sizes = []
        if value.array is not None:
            sizes += [value.array.minimum, value.array.maximum]
            item = join(item, read_absent_as_null(get_item(value.array))) if value.array.maximum else item
        if value.kinds & ~ARRAY:
            sizes.append(1)
            item = join(item, value._replace(kinds=value.kinds & ~ARRAY, array=None))
        least, most = least + min(sizes), most + max(sizes)
    return run.charge_array(array_range(least, most, item))


OPERATIONS: dict[str, Callable[[AbstractEvaluation, Any, AbstractValue], AbstractValue]] = {
    "var": _var,
    "missing": _missing,
    "missing_some": _missing_some,
    "if": _if,
    "?:": _if,
    "and": _and,
    "or": _or,
    **{name: _make_arithmetic(name) for name in ARITHMETIC},
    "map": _map,
    "filter": _filter,
    "reduce": _reduce,
    "all": _quantify,
    "some": _quantify,
    "none": _none,
    "merge": _merge,
    **STRING_OPERATIONS,
}
"""Operators that return values. Comparisons and negations are in `CONDITIONS`."""
