"""Canonical JSON (RFC 8785): one notation for each value, in every language; and Python values as input.

The engine's values are JSON whose numbers are floats. Objects of a caller must satisfy the limits of
documents.
"""

from __future__ import annotations

import json
import math
from typing import Any

from peripety.engine import strict_json
from peripety.engine.backend_protocol import EngineError
from peripety.engine.strict_json import MAX_CANONICAL_DEPTH, MAX_SAFE_INTEGER

# ECMAScript writes a number without an exponent if its decimal point is within these positions.
_LARGEST_PLAIN_EXPONENT = 21
_SMALLEST_PLAIN_EXPONENT = -6
_quote = json.JSONEncoder(ensure_ascii=False).encode


def canonicalize(value: Any) -> bytes:
    """Return the canonical bytes of a JSON value.

    Args:
        value: None, bool, int, float, str, or lists and string-keyed dicts of them.

    Raises:
        EngineError: `NOT_JSON`, `NUMBER_RANGE` or `TOO_DEEP`.
    """
    return _format_value(value, 0).encode("utf-8")


def _format_value(value: Any, depth: int) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _format_string(value)
    if isinstance(value, int | float):
        return format_number(value)
    if depth == MAX_CANONICAL_DEPTH:
        raise EngineError("TOO_DEEP", f"nested deeper than {MAX_CANONICAL_DEPTH} levels")
    if isinstance(value, list | tuple):
        return "[" + ",".join(_format_value(item, depth + 1) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(_format_member(value, key, depth) for key in sorted(value, key=_sort_key)) + "}"
    raise EngineError("NOT_JSON", f"a {type(value).__name__} is not a JSON value")


def _format_member(members: dict[Any, Any], key: Any, depth: int) -> str:
    return f"{_format_string(key)}:{_format_value(members[key], depth + 1)}"


def _sort_key(key: Any) -> bytes:
    """Return the UTF-16 code units of a key: RFC 8785 sorts by these, not by code points."""
    if not isinstance(key, str):
        raise EngineError("NOT_JSON", "the keys of an object are strings")
    return key.encode("utf-16-be", "surrogatepass")


def _format_string(value: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise EngineError("LONE_SURROGATE", "a lone surrogate is not a character") from None
    return _quote(value)


def format_number(value: float) -> str:
    """Format a number as ECMAScript does (`Number::toString`)."""
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise EngineError("NUMBER_RANGE", "an integer must lie within ±9007199254740991")
        return str(value)
    if not math.isfinite(value):
        raise EngineError("NUMBER_RANGE", "the number does not fit binary64")
    if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return str(int(value))
    sign = "-" if value < 0 else ""
    digits, point = _shortest_digits(abs(value))
    return sign + _format_digits(digits, point)


def _shortest_digits(value: float) -> tuple[str, int]:
    """Return the shortest digits that identify the value, and the position of the decimal point."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    point = len(whole) - leading + int(exponent or 0)
    return digits.rstrip("0"), point


def _format_digits(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= _LARGEST_PLAIN_EXPONENT:
        return digits + "0" * (point - count)
    if 0 < point <= _LARGEST_PLAIN_EXPONENT:
        return f"{digits[:point]}.{digits[point:]}"
    if _SMALLEST_PLAIN_EXPONENT < point <= 0:
        return "0." + "0" * -point + digits
    exponent = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return (digits if count == 1 else f"{digits[0]}.{digits[1:]}") + exponent


def from_python(plain: Any) -> Any:
    """Convert a Python object, or parse the JSON in a `bytes`; the result shares nothing with it.

    Raises:
        EngineError: as the strict parser, and `NOT_JSON` for values without a JSON form.
    """
    return strict_json.parse(plain) if isinstance(plain, bytes) else _PythonReader().value(plain, 0)


def to_python(value: Any) -> Any:
    """Convert to Python objects; a number is an int if it is a safe integer, else a float."""
    if isinstance(value, float):
        return int(value) if abs(value) <= strict_json.MAX_SAFE_INTEGER and value.is_integer() else value
    if isinstance(value, list):
        return [to_python(item) for item in value]
    if isinstance(value, dict):
        return {key: to_python(value[key]) for key in sorted(value)}
    return value


class _PythonReader:
    """Walk through a Python object, which may be cyclic. Subclasses are treated as their base types."""

    def __init__(self) -> None:
        self.nodes = 0
        self.size = 0

    def value(self, plain: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > strict_json.MAX_NODES:
            raise EngineError("TOO_MANY_NODES", f"more than {strict_json.MAX_NODES} values")
        if plain is None or isinstance(plain, bool):
            return plain
        if isinstance(plain, str):
            return self.text(plain, strict_json.MAX_STRING_BYTES, "STRING_TOO_LONG")
        if isinstance(plain, int):
            return _convert_integer(int.__int__(plain))
        if isinstance(plain, float):
            return _convert_float(float.__float__(plain))
        if isinstance(plain, dict):
            return self.object(plain, _descend(depth))
        if isinstance(plain, list | tuple):
            depth = _descend(depth)
            items = list.__iter__(plain) if isinstance(plain, list) else tuple.__iter__(plain)
            return [self.value(item, depth) for item in items]
        raise EngineError("NOT_JSON", f"a {type(plain).__name__} is not a JSON value")

    def object(self, plain: dict[Any, Any], depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, member in dict.items(plain):
            if not isinstance(key, str):
                raise EngineError("NOT_JSON", "the keys of an object are strings")
            name = self.text(key, strict_json.MAX_KEY_BYTES, "KEY_TOO_LONG")
            members[name] = self.value(member, depth)
        return members

    def text(self, plain: str, limit: int, code: str) -> str:
        try:
            size = len(str.encode(plain, "utf-8"))
        except UnicodeEncodeError:
            raise EngineError("LONE_SURROGATE", "a lone surrogate is not a character") from None
        if size > limit:
            raise EngineError(code, f"longer than {limit} bytes")
        self.size += size
        if self.size > strict_json.MAX_CANONICAL_BYTES:
            message = f"the texts have more than {strict_json.MAX_CANONICAL_BYTES} bytes together"
            raise EngineError("DOCUMENT_TOO_LARGE", message)
        return str.__str__(plain)


def _descend(depth: int) -> int:
    if depth == strict_json.MAX_DEPTH:
        raise EngineError("TOO_DEEP", f"nested deeper than {strict_json.MAX_DEPTH} levels")
    return depth + 1


def _convert_integer(plain: int) -> float:
    if abs(plain) > strict_json.MAX_SAFE_INTEGER:
        raise EngineError("NUMBER_RANGE", "an integer must lie within ±9007199254740991")
    return float(plain)


def _convert_float(plain: float) -> float:
    if not math.isfinite(plain):
        raise EngineError("NUMBER_RANGE", "the number does not fit binary64")
    return plain + 0.0  # -0 becomes 0
