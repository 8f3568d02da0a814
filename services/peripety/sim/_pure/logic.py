"""JSONLogic: the slow, obvious interpreter.

Values are JSON values whose numbers are floats. The dialect is the community's test suites; where those are
silent it is the table in docs/semantics.md. Every evaluation is bounded by fuel, so that no rule can cost
more than its budget.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.border import MAX_DEPTH
from peripety.sim._pure.canonical import number_text
from peripety.sim._pure.paths import MISSING, lookup_variable, split_variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FUEL", "OPERATORS", "OUTPUT_LIMIT", "evaluate", "finite", "truthy"]

FUEL = 10_000
OUTPUT_LIMIT = 1 << 16
_CHARACTERS_PER_STEP = 1024

_NUMERIC_TEXT = re.compile(r"[ \t\n\r]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\n\r]*")
_BLANK_TEXT = re.compile(r"[ \t\n\r]*")


def evaluate(logic: Any, data: Any) -> Any:
    """The value of a JSONLogic expression over data.

    Raises:
        CoreError: `UNKNOWN_OPERATOR`, `INVALID_ARGUMENTS`, `NOT_A_NUMBER`, `DIVISION_BY_ZERO`,
            `NUMERIC_RANGE` or `FUEL_EXHAUSTED`.
    """
    value = _Evaluation().value(logic, data)
    level = [value]
    depth = 0
    while level := [item for item in level if isinstance(item, list | dict)]:
        depth += 1
        _check_depth(depth)
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return value


def truthy(value: Any) -> bool:
    """JSONLogic's truth: false, null, 0, "" and [] are false; everything else, {} included, is true."""
    return True if isinstance(value, dict) else bool(value)


class _Evaluation:
    """One evaluation and what it may still spend."""

    def __init__(self) -> None:
        self.fuel = FUEL
        self.output = OUTPUT_LIMIT

    def value(self, logic: Any, data: Any) -> Any:
        self.burn(1)
        if isinstance(logic, list):
            return self.made([self.value(item, data) for item in logic])
        if not isinstance(logic, dict) or not logic:
            return logic
        if len(logic) > 1:
            raise CoreError("UNKNOWN_OPERATOR", "an operation has exactly one key, its operator")
        ((name, operand),) = logic.items()
        operator = OPERATORS.get(name)
        if operator is None:
            raise CoreError("UNKNOWN_OPERATOR", f"'{name[:40]}' is not a JSONLogic operator")
        return operator(self, operand, data)

    def burn(self, amount: int) -> None:
        self.fuel -= amount
        if self.fuel < 0:
            raise CoreError("FUEL_EXHAUSTED", f"the expression needs more than {FUEL} steps")

    def produce(self, amount: int) -> None:
        self.output -= amount
        if self.output < 0:
            raise CoreError(
                "FUEL_EXHAUSTED", f"the expression makes more than {OUTPUT_LIMIT} characters or items"
            )

    def made(self, items: list[Any]) -> list[Any]:
        """Charge a new array for everything in it: each item, each character, all the way down."""
        pending = [items]
        while pending:
            for item in pending.pop():
                self.produce(1 + (len(item) if isinstance(item, str) else 0))
                if isinstance(item, list):
                    pending.append(item)
                elif isinstance(item, dict):
                    pending.append([item[key] for key in sorted(item)])
        return items

    def arguments(self, operand: Any, data: Any) -> list[Any]:
        """All arguments, evaluated; an operand that is not a list is the only argument."""
        items = operand if isinstance(operand, list) else [operand]
        return [self.value(item, data) for item in items]

    def spread(self, operand: Any, data: Any) -> list[Any]:
        """As `arguments`, but an operation that yields an array provides them all."""
        if isinstance(operand, list):
            return self.arguments(operand, data)
        value = self.value(operand, data)
        if not isinstance(operand, dict) or not isinstance(value, list):
            return [value]
        self.burn(len(value))
        return value

    def equal(self, a: Any, b: Any, depth: int = 0) -> bool:
        """Strict, structural equality."""
        self.burn(1)
        _check_depth(depth)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(self.equal(x, y, depth + 1) for x, y in zip(a, b, strict=True))
        if isinstance(a, dict) and isinstance(b, dict):
            return len(a) == len(b) and all(k in b and self.equal(a[k], b[k], depth + 1) for k in sorted(a))
        return type(a) is type(b) and bool(a == b)


def _operands(name: str, operand: Any, least: int) -> list[Any]:
    if not isinstance(operand, list) or len(operand) < least:
        raise CoreError("INVALID_ARGUMENTS", f"'{name}' needs a list of at least {least} arguments")
    return operand


def _number(value: Any) -> float:
    """A value as a number: null is 0, a boolean 0 or 1, "" is 0, a numeric string its number."""
    if isinstance(value, float):
        return value
    if value is None or isinstance(value, bool):
        return float(value or 0)
    if isinstance(value, str):
        if _BLANK_TEXT.fullmatch(value):
            return 0.0
        match = _NUMERIC_TEXT.fullmatch(value)
        if match is not None:
            return finite(float(match.group(1)))
    raise CoreError("NOT_A_NUMBER", f"{_kind(value)} is not a number here")


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list) else "the text"


def finite(value: float) -> float:
    """A result that may enter a state: finite, and 0 for -0."""
    if not math.isfinite(value):
        raise CoreError("NUMERIC_RANGE", "the result does not fit binary64")
    return value + 0.0  # -0 becomes 0


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise CoreError("FUEL_EXHAUSTED", f"the expression nests values deeper than {MAX_DEPTH} levels")


def _text(value: Any, depth: int = 0) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, list):
        _check_depth(depth)
        return ",".join(_text(item, depth + 1) for item in value)
    raise CoreError("INVALID_ARGUMENTS", "an object has no text")


# --- data ---


def _find(path: Any, data: Any) -> Any:
    if path is None:
        return data
    if isinstance(path, str | float) and not isinstance(path, bool):
        return lookup_variable(data, split_variable(path if isinstance(path, str) else number_text(path)))
    raise CoreError("INVALID_ARGUMENTS", "'var' needs a path")


def _var(run: _Evaluation, operand: Any, data: Any) -> Any:
    args = run.arguments(operand, data)
    found = _find(args[0] if args else None, data)
    if found is not MISSING:
        return found
    return args[1] if len(args) > 1 else None


def _absent(run: _Evaluation, paths: list[Any], data: Any) -> list[Any]:
    run.burn(len(paths))
    return [path for path in paths if _find(path, data) in (MISSING, None, "")]


def _missing(run: _Evaluation, operand: Any, data: Any) -> list[Any]:
    args = run.arguments(operand, data)
    return _absent(run, args[0] if args and isinstance(args[0], list) else args, data)


def _missing_some(run: _Evaluation, operand: Any, data: Any) -> list[Any]:
    args = run.arguments(_operands("missing_some", operand, 2), data)
    needed, paths = args[0], args[1]
    if not isinstance(needed, float) or not isinstance(paths, list):
        raise CoreError("INVALID_ARGUMENTS", "'missing_some' needs a number and a list of paths")
    absent = _absent(run, paths, data)
    return [] if len(paths) - len(absent) >= needed else absent


# --- control ---


def _if(run: _Evaluation, operand: Any, data: Any) -> Any:
    items = _operands("if", operand, 0)
    for at in range(0, len(items) - 1, 2):
        if truthy(run.value(items[at], data)):
            return run.value(items[at + 1], data)
    return run.value(items[-1], data) if len(items) % 2 else None


def _and(run: _Evaluation, operand: Any, data: Any) -> Any:
    value: Any = False
    for item in _operands("and", operand, 0):
        value = run.value(item, data)
        if not truthy(value):
            return value
    return value


def _or(run: _Evaluation, operand: Any, data: Any) -> Any:
    value: Any = False
    for item in _operands("or", operand, 0):
        value = run.value(item, data)
        if truthy(value):
            return value
    return value


def _truth(run: _Evaluation, operand: Any, data: Any) -> bool:
    args = run.arguments(operand, data)
    return bool(args) and truthy(args[0])


def _not(run: _Evaluation, operand: Any, data: Any) -> bool:
    return not _truth(run, operand, data)


# --- comparison ---


def _loosely_equal(_run: _Evaluation, a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a == b
    return _number(a) == _number(b)


def _strictly_equal(run: _Evaluation, a: Any, b: Any) -> bool:
    return run.equal(a, b)


def _less(_run: _Evaluation, a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a < b
    return _number(a) < _number(b)


def _chain(
    name: str, holds: Callable[[_Evaluation, Any, Any], bool]
) -> Callable[[_Evaluation, Any, Any], bool]:
    """An operator that must hold between each two neighbours; it stops at the first pair that fails."""

    def operator(run: _Evaluation, operand: Any, data: Any) -> bool:
        items = _operands(name, operand, 2)
        previous = run.value(items[0], data)
        for item in items[1:]:
            value = run.value(item, data)
            if not holds(run, previous, value):
                return False
            previous = value
        return True

    return operator


# --- arithmetic ---


def _sum(run: _Evaluation, operand: Any, data: Any) -> float:
    total = 0.0
    for value in run.spread(operand, data):
        total += _number(value)
    return finite(total)


def _product(run: _Evaluation, operand: Any, data: Any) -> float:
    total = 1.0
    for value in run.spread(operand, data):
        total *= _number(value)
    return finite(total)


def _numbers(name: str, run: _Evaluation, operand: Any, data: Any, least: int) -> list[float]:
    values = [_number(value) for value in run.spread(operand, data)]
    if len(values) < least:
        raise CoreError("INVALID_ARGUMENTS", f"'{name}' needs at least {least} arguments")
    return values


def _difference(run: _Evaluation, operand: Any, data: Any) -> float:
    first, *rest = _numbers("-", run, operand, data, 1)
    if not rest:
        return finite(-first)
    for value in rest:
        first -= value
    return finite(first)


def _quotient(run: _Evaluation, operand: Any, data: Any) -> float:
    values = _numbers("/", run, operand, data, 1)
    first, *rest = values if len(values) > 1 else [1.0, *values]
    for value in rest:
        first = finite(first / _divisor(value))
    return first


def _remainder(run: _Evaluation, operand: Any, data: Any) -> float:
    first, *rest = _numbers("%", run, operand, data, 2)
    for value in rest:
        first = finite(math.fmod(first, _divisor(value)))
    return first


def _divisor(value: float) -> float:
    if value == 0:
        raise CoreError("DIVISION_BY_ZERO", "division by zero")
    return value


def _extreme(name: str, better: Callable[[float, float], bool]) -> Callable[[_Evaluation, Any, Any], float]:
    def operator(run: _Evaluation, operand: Any, data: Any) -> float:
        values = run.spread(operand, data)
        if not values or not all(isinstance(value, float) for value in values):
            raise CoreError("INVALID_ARGUMENTS", f"'{name}' needs numbers, at least one")
        best: float = values[0]
        for value in values[1:]:
            best = value if better(value, best) else best
        return best

    return operator


# --- arrays ---


def _elements(name: str, run: _Evaluation, operand: Any, data: Any, *, missing_is_empty: bool) -> list[Any]:
    items = _operands(name, operand, 2)
    value = run.value(items[0], data)
    if value is None and items[0] is not None and missing_is_empty:
        return []
    if not isinstance(value, list):
        raise CoreError("INVALID_ARGUMENTS", f"'{name}' needs an array to go through")
    return value


def _map(run: _Evaluation, operand: Any, data: Any) -> list[Any]:
    elements = _elements("map", run, operand, data, missing_is_empty=True)
    return run.made([run.value(operand[1], element) for element in elements])


def _filter(run: _Evaluation, operand: Any, data: Any) -> list[Any]:
    elements = _elements("filter", run, operand, data, missing_is_empty=True)
    if operand[1] is None:
        raise CoreError("INVALID_ARGUMENTS", "'filter' needs a condition")
    result: list[Any] = []
    for element in elements:
        if truthy(run.value(operand[1], element)):
            run.produce(1)
            result.append(element)
    return result


def _reduce(run: _Evaluation, operand: Any, data: Any) -> Any:
    elements: Iterator[Any] = iter(_elements("reduce", run, operand, data, missing_is_empty=True))
    total = run.value(operand[2], data) if len(operand) > 2 else next(elements, None)  # noqa: PLR2004
    for element in elements:
        total = run.value(operand[1], {"current": element, "accumulator": total})
    return total


def _all(run: _Evaluation, operand: Any, data: Any) -> bool:
    elements = _elements("all", run, operand, data, missing_is_empty=False)
    return bool(elements) and all(truthy(run.value(operand[1], element)) for element in elements)


def _some(run: _Evaluation, operand: Any, data: Any) -> bool:
    elements = _elements("some", run, operand, data, missing_is_empty=False)
    return any(truthy(run.value(operand[1], element)) for element in elements)


def _none(run: _Evaluation, operand: Any, data: Any) -> bool:
    elements = _elements("none", run, operand, data, missing_is_empty=False)
    return not any(truthy(run.value(operand[1], element)) for element in elements)


def _merge(run: _Evaluation, operand: Any, data: Any) -> list[Any]:
    parts = [value if isinstance(value, list) else [value] for value in run.arguments(operand, data)]
    size = sum(len(part) for part in parts)
    if size > run.output:
        run.produce(size)  # refused before it takes memory
    return run.made([item for part in parts for item in part])


# --- text ---


def _in(run: _Evaluation, operand: Any, data: Any) -> bool:
    args = run.arguments(_operands("in", operand, 2), data)
    needle, haystack = args[0], args[1]
    if isinstance(haystack, list):
        return any(run.equal(needle, item) for item in haystack)
    if not isinstance(needle, str) or not isinstance(haystack, str):
        return False
    run.burn(len(haystack) // _CHARACTERS_PER_STEP)
    return needle in haystack


def _cat(run: _Evaluation, operand: Any, data: Any) -> str:
    parts: list[str] = []
    for value in run.spread(operand, data):
        parts.append(_text(value))
        run.produce(len(parts[-1]))
    return "".join(parts)


def _substr(run: _Evaluation, operand: Any, data: Any) -> str:
    args = run.arguments(_operands("substr", operand, 2), data)
    source = _text(args[0])
    size = len(source)
    run.burn(size // _CHARACTERS_PER_STEP)
    start = _position(args[1], size)
    if len(args) > 2 and args[2] is not None:  # noqa: PLR2004 - the optional length
        length = _whole(args[2])
        end = start + length if length >= 0 else size + length
    else:
        end = size
    run.produce(max(0, min(end, size) - start))
    return source[start : max(start, min(end, size))]


def _position(value: Any, size: int) -> int:
    start = _whole(value)
    return max(0, size + start) if start < 0 else min(start, size)


def _whole(value: Any) -> int:
    number = _number(value)
    return int(max(-(2.0**31), min(2.0**31, number)))


OPERATORS: dict[str, Callable[[_Evaluation, Any, Any], Any]] = {
    "var": _var,
    "missing": _missing,
    "missing_some": _missing_some,
    "if": _if,
    "?:": _if,
    "and": _and,
    "or": _or,
    "!": _not,
    "!!": _truth,
    "==": _chain("==", _loosely_equal),
    "!=": _chain("!=", lambda run, a, b: not _loosely_equal(run, a, b)),
    "===": _chain("===", _strictly_equal),
    "!==": _chain("!==", lambda run, a, b: not _strictly_equal(run, a, b)),
    "<": _chain("<", _less),
    "<=": _chain("<=", lambda run, a, b: not _less(run, b, a)),
    ">": _chain(">", lambda run, a, b: _less(run, b, a)),
    ">=": _chain(">=", lambda run, a, b: not _less(run, a, b)),
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "min": _extreme("min", lambda a, b: a < b),
    "max": _extreme("max", lambda a, b: a > b),
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
