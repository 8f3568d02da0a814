"""JSONLogic operators, one function each, and coercions to truth values, numbers, integers and texts.

An operator receives the evaluation, which evaluates operands and charges for work, the raw operand, and the
data.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import format_number
from peripety.engine.paths import MISSING, lookup_variable
from peripety.engine.strict_json import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.engine._reference.jsonlogic import Evaluation


_NUMERIC_TEXT = re.compile(r"[ \t\n\r]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\n\r]*")
_BLANK_TEXT = re.compile(r"[ \t\n\r]*")


def is_truthy(value: Any) -> bool:
    """Return the truth value: false, null, 0, "" and [] are false; everything else, including {}, is true."""
    return True if isinstance(value, dict) else bool(value)


def to_number(value: Any) -> float:
    """Convert to a number: null and "" are 0, booleans 0 or 1, numeric strings their number."""
    if isinstance(value, float):
        return value
    if value is None or isinstance(value, bool):
        return float(value or 0)
    if isinstance(value, str):
        if _BLANK_TEXT.fullmatch(value):
            return 0.0
        match = _NUMERIC_TEXT.fullmatch(value)
        if match is not None:
            return require_finite(float(match.group(1)))
    raise EngineError("NOT_A_NUMBER", f"{_describe_kind(value)} is not a number here")


def _describe_kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list) else "the text"


def require_finite(value: float) -> float:
    """Return a result that a state can hold: finite, with 0 for -0."""
    if not math.isfinite(value):
        raise EngineError("NUMERIC_RANGE", "the result does not fit binary64")
    return value + 0.0  # -0 becomes 0


def check_depth(depth: int) -> None:
    """Raise if a rule nests a value deeper than a state allows."""
    if depth > MAX_DEPTH:
        raise EngineError("FUEL_EXHAUSTED", f"the expression nests values deeper than {MAX_DEPTH} levels")


def to_text(value: Any, depth: int = 0) -> str:
    """Convert to text: null is empty, booleans are words, arrays are joined with commas."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, list):
        check_depth(depth)
        return ",".join(to_text(item, depth + 1) for item in value)
    raise EngineError("INVALID_ARGUMENTS", "an object has no text")


def to_integer(value: Any) -> int:
    """Convert to an integer, truncated toward zero and clamped to ±2^31."""
    number = to_number(value)
    return int(max(-(2.0**31), min(2.0**31, number)))


_CHARACTERS_PER_STEP = 1024
# Splitting a path costs more than searching a text.
_PATH_CHARACTERS_PER_STEP = 64


def _require_operands(name: str, operand: Any, least: int) -> list[Any]:
    if not isinstance(operand, list) or len(operand) < least:
        raise EngineError("INVALID_ARGUMENTS", f"'{name}' needs a list of at least {least} arguments")
    return operand


# --- data ---


def _look_up(run: Evaluation, path: Any, data: Any) -> Any:
    if path is None:
        return data
    if isinstance(path, str | float) and not isinstance(path, bool):
        return lookup_variable(data, run.split_path(path if isinstance(path, str) else format_number(path)))
    raise EngineError("INVALID_ARGUMENTS", "'var' needs a path")


def _path_steps(path: Any) -> int:
    return len(path) // _PATH_CHARACTERS_PER_STEP if isinstance(path, str) else 0


def _var(run: Evaluation, operand: Any, data: Any) -> Any:
    args = run.evaluate_arguments(operand, data)
    written = operand[0] if isinstance(operand, list) and operand else operand
    if args and not isinstance(written, str):
        run.spend_fuel(_path_steps(args[0]))
    found = _look_up(run, args[0] if args else None, data)
    if found is not MISSING:
        return found
    return args[1] if len(args) > 1 else None


def _find_missing(run: Evaluation, paths: list[Any], data: Any) -> list[Any]:
    run.spend_fuel(len(paths) + sum(map(_path_steps, paths)))
    return [path for path in paths if _look_up(run, path, data) in (MISSING, None, "")]


def _missing(run: Evaluation, operand: Any, data: Any) -> list[Any]:
    args = run.evaluate_arguments(operand, data)
    return _find_missing(run, args[0] if args and isinstance(args[0], list) else args, data)


def _missing_some(run: Evaluation, operand: Any, data: Any) -> list[Any]:
    args = run.evaluate_arguments(_require_operands("missing_some", operand, 2), data)
    needed, paths = args[0], args[1]
    if not isinstance(needed, float) or not isinstance(paths, list):
        raise EngineError("INVALID_ARGUMENTS", "'missing_some' needs a number and a list of paths")
    absent = _find_missing(run, paths, data)
    return [] if len(paths) - len(absent) >= needed else absent


# --- control ---


def _if(run: Evaluation, operand: Any, data: Any) -> Any:
    items = _require_operands("if", operand, 0)
    for at in range(0, len(items) - 1, 2):
        if is_truthy(run.evaluate(items[at], data)):
            return run.evaluate(items[at + 1], data)
    return run.evaluate(items[-1], data) if len(items) % 2 else None


def _and(run: Evaluation, operand: Any, data: Any) -> Any:
    value: Any = False
    for item in _require_operands("and", operand, 0):
        value = run.evaluate(item, data)
        if not is_truthy(value):
            return value
    return value


def _or(run: Evaluation, operand: Any, data: Any) -> Any:
    value: Any = False
    for item in _require_operands("or", operand, 0):
        value = run.evaluate(item, data)
        if is_truthy(value):
            return value
    return value


def _truth(run: Evaluation, operand: Any, data: Any) -> bool:
    args = run.evaluate_arguments(operand, data)
    return bool(args) and is_truthy(args[0])


def _not(run: Evaluation, operand: Any, data: Any) -> bool:
    return not _truth(run, operand, data)


# --- comparison ---


def _loosely_equal(_run: Evaluation, a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a == b
    return to_number(a) == to_number(b)


def _strictly_equal(run: Evaluation, a: Any, b: Any) -> bool:
    return run.is_equal(a, b)


def _less(_run: Evaluation, a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a < b
    return to_number(a) < to_number(b)


# Comparison of two values; the operator of the same name compares all neighbours among its arguments.
COMPARISONS: dict[str, Callable[[Evaluation, Any, Any], bool]] = {
    "==": _loosely_equal,
    "!=": lambda run, a, b: not _loosely_equal(run, a, b),
    "===": _strictly_equal,
    "!==": lambda run, a, b: not _strictly_equal(run, a, b),
    "<": _less,
    "<=": lambda run, a, b: not _less(run, b, a),
    ">": lambda run, a, b: _less(run, b, a),
    ">=": lambda run, a, b: not _less(run, a, b),
}


def _compare_neighbours(
    name: str,
    holds: Callable[[Evaluation, Any, Any], bool],
) -> Callable[[Evaluation, Any, Any], bool]:
    """Return an operator that compares each two neighbours and stops at the first failure."""

    def operator(run: Evaluation, operand: Any, data: Any) -> bool:
        items = _require_operands(name, operand, 2)
        previous = run.evaluate(items[0], data)
        for item in items[1:]:
            value = run.evaluate(item, data)
            if not holds(run, previous, value):
                return False
            previous = value
        return True

    return operator


# --- arithmetic ---


def _sum(run: Evaluation, operand: Any, data: Any) -> float:
    total = 0.0
    for value in run.expand_arguments(operand, data):
        total += to_number(value)
    return require_finite(total)


def _product(run: Evaluation, operand: Any, data: Any) -> float:
    total = 1.0
    for value in run.expand_arguments(operand, data):
        total *= to_number(value)
    return require_finite(total)


def _evaluate_numbers(name: str, run: Evaluation, operand: Any, data: Any, least: int) -> list[float]:
    values = [to_number(value) for value in run.expand_arguments(operand, data)]
    if len(values) < least:
        raise EngineError("INVALID_ARGUMENTS", f"'{name}' needs at least {least} arguments")
    return values


def _difference(run: Evaluation, operand: Any, data: Any) -> float:
    first, *rest = _evaluate_numbers("-", run, operand, data, 1)
    if not rest:
        return require_finite(-first)
    for value in rest:
        first -= value
    return require_finite(first)


def _quotient(run: Evaluation, operand: Any, data: Any) -> float:
    values = _evaluate_numbers("/", run, operand, data, 1)
    first, *rest = values if len(values) > 1 else [1.0, *values]
    for value in rest:
        first = require_finite(first / _require_divisor(value))
    return first


def _remainder(run: Evaluation, operand: Any, data: Any) -> float:
    first, *rest = _evaluate_numbers("%", run, operand, data, 2)
    for value in rest:
        first = require_finite(math.fmod(first, _require_divisor(value)))
    return first


def _require_divisor(value: float) -> float:
    if value == 0:
        raise EngineError("DIVISION_BY_ZERO", "division by zero")
    return value


def _make_extreme(
    name: str,
    better: Callable[[float, float], bool],
) -> Callable[[Evaluation, Any, Any], float]:
    def operator(run: Evaluation, operand: Any, data: Any) -> float:
        values = run.expand_arguments(operand, data)
        if not values or not all(isinstance(value, float) for value in values):
            raise EngineError("INVALID_ARGUMENTS", f"'{name}' needs numbers, at least one")
        best: float = values[0]
        for value in values[1:]:
            best = value if better(value, best) else best
        return best

    return operator


# --- arrays ---


def _evaluate_elements(
    name: str,
    run: Evaluation,
    operand: Any,
    data: Any,
    *,
    missing_is_empty: bool,
) -> list[Any]:
    items = _require_operands(name, operand, 2)
    value = run.evaluate(items[0], data)
    if value is None and items[0] is not None and missing_is_empty:
        return []
    if not isinstance(value, list):
        raise EngineError("INVALID_ARGUMENTS", f"'{name}' needs an array to go through")
    return value


def _map(run: Evaluation, operand: Any, data: Any) -> list[Any]:
    elements = _evaluate_elements("map", run, operand, data, missing_is_empty=True)
    return run.charge_array([run.evaluate(operand[1], element) for element in elements])


def _filter(run: Evaluation, operand: Any, data: Any) -> list[Any]:
    elements = _evaluate_elements("filter", run, operand, data, missing_is_empty=True)
    if operand[1] is None:
        raise EngineError("INVALID_ARGUMENTS", "'filter' needs a condition")
    result: list[Any] = []
    for element in elements:
        if is_truthy(run.evaluate(operand[1], element)):
            run.spend_output(1)
            result.append(element)
    return result


def _reduce(run: Evaluation, operand: Any, data: Any) -> Any:
    elements: Iterator[Any] = iter(_evaluate_elements("reduce", run, operand, data, missing_is_empty=True))
    total = run.evaluate(operand[2], data) if len(operand) > 2 else next(elements, None)  # noqa: PLR2004
    for element in elements:
        total = run.evaluate(operand[1], {"current": element, "accumulator": total})
    return total


def _all(run: Evaluation, operand: Any, data: Any) -> bool:
    elements = _evaluate_elements("all", run, operand, data, missing_is_empty=False)
    return bool(elements) and all(is_truthy(run.evaluate(operand[1], element)) for element in elements)


def _some(run: Evaluation, operand: Any, data: Any) -> bool:
    elements = _evaluate_elements("some", run, operand, data, missing_is_empty=False)
    return any(is_truthy(run.evaluate(operand[1], element)) for element in elements)


def _none(run: Evaluation, operand: Any, data: Any) -> bool:
    elements = _evaluate_elements("none", run, operand, data, missing_is_empty=False)
    return not any(is_truthy(run.evaluate(operand[1], element)) for element in elements)


def _merge(run: Evaluation, operand: Any, data: Any) -> list[Any]:
    parts = [value if isinstance(value, list) else [value] for value in run.evaluate_arguments(operand, data)]
    size = sum(len(part) for part in parts)
    if size > run.output:
        run.spend_output(size)  # rejected before memory is allocated
    return run.charge_array([item for part in parts for item in part])


# --- text ---


def _in(run: Evaluation, operand: Any, data: Any) -> bool:
    args = run.evaluate_arguments(_require_operands("in", operand, 2), data)
    needle, haystack = args[0], args[1]
    if isinstance(haystack, list):
        return any(run.is_equal(needle, item) for item in haystack)
    if not isinstance(needle, str) or not isinstance(haystack, str):
        return False
    run.spend_fuel(len(haystack) // _CHARACTERS_PER_STEP)
    return needle in haystack


def _cat(run: Evaluation, operand: Any, data: Any) -> str:
    parts: list[str] = []
    for value in run.expand_arguments(operand, data):
        parts.append(to_text(value))
        run.spend_output(len(parts[-1]))
    return "".join(parts)


def _substr(run: Evaluation, operand: Any, data: Any) -> str:
    args = run.evaluate_arguments(_require_operands("substr", operand, 2), data)
    source = to_text(args[0])
    run.spend_fuel(len(source) // _CHARACTERS_PER_STEP)
    result = cut_text(source, args[1], args[2] if len(args) > 2 else None)  # noqa: PLR2004 - the optional length
    run.spend_output(len(result))
    return result


def cut_text(source: str, start: Any, length: Any) -> str:
    """Return a part of a text; negative positions and lengths count from the end."""
    size = len(source)
    first = _resolve_position(start, size)
    if length is None:
        return source[first:]
    count = to_integer(length)
    end = min(first + count, size) if count >= 0 else size + count
    return source[first : max(first, end)]


def _resolve_position(value: Any, size: int) -> int:
    start = to_integer(value)
    return max(0, size + start) if start < 0 else min(start, size)


OPERATORS: dict[str, Callable[[Evaluation, Any, Any], Any]] = {
    "var": _var,
    "missing": _missing,
    "missing_some": _missing_some,
    "if": _if,
    "?:": _if,
    "and": _and,
    "or": _or,
    "!": _not,
    "!!": _truth,
    **{name: _compare_neighbours(name, holds) for name, holds in COMPARISONS.items()},
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "min": _make_extreme("min", lambda a, b: a < b),
    "max": _make_extreme("max", lambda a, b: a > b),
    "map": _map,
    "filter": _filter,
    "reduce": _reduce,
    "all": _all,
    "some": _some,
    "none": _none,
    "merge": _merge,
    "in": _in,
    "cat": _cat,
    "substr": _substr,
}
