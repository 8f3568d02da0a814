"""Canonical JSON (RFC 8785): one notation for each value, in every language."""

from __future__ import annotations

import json
import math
from typing import Any

from peripety.sim._core import CoreError
from peripety.sim._pure.border import MAX_CANONICAL_DEPTH, MAX_SAFE_INTEGER

__all__ = ["canonical", "number_text"]

# ECMAScript writes a number without an exponent if its decimal point is within these positions.
_LARGEST_PLAIN_EXPONENT = 21
_SMALLEST_PLAIN_EXPONENT = -6
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a JSON value.

    Args:
        value: None, bool, int, float, str, or lists and string-keyed dicts of them.

    Raises:
        CoreError: `NOT_JSON`, `NUMBER_RANGE` or `TOO_DEEP`.
    """
    return _text(value, 0).encode("utf-8")


def _text(value: Any, depth: int) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _string_text(value)
    if isinstance(value, int | float):
        return number_text(value)
    if depth == MAX_CANONICAL_DEPTH:
        raise CoreError("TOO_DEEP", f"nested deeper than {MAX_CANONICAL_DEPTH} levels")
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(item, depth + 1) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(_member(value, key, depth) for key in sorted(value, key=_sort_key)) + "}"
    raise CoreError("NOT_JSON", f"a {type(value).__name__} is not a JSON value")


def _member(members: dict[Any, Any], key: Any, depth: int) -> str:
    return f"{_string_text(key)}:{_text(members[key], depth + 1)}"


def _sort_key(key: Any) -> bytes:
    """Return the UTF-16 code units of a key: RFC 8785 sorts by these, not by code points."""
    if not isinstance(key, str):
        raise CoreError("NOT_JSON", "the keys of an object are strings")
    return key.encode("utf-16-be", "surrogatepass")


def _string_text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise CoreError("LONE_SURROGATE", "a lone surrogate is not a character") from None
    return _quoted(value)


def number_text(value: float) -> str:
    """Format a number as ECMAScript does (`Number::toString`)."""
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise CoreError("NUMBER_RANGE", "an integer must lie within ±9007199254740991")
        return str(value)
    if not math.isfinite(value):
        raise CoreError("NUMBER_RANGE", "the number does not fit binary64")
    if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return str(int(value))
    sign = "-" if value < 0 else ""
    digits, point = _shortest_digits(abs(value))
    return sign + _layout(digits, point)


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


def _layout(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= _LARGEST_PLAIN_EXPONENT:
        return digits + "0" * (point - count)
    if 0 < point <= _LARGEST_PLAIN_EXPONENT:
        return f"{digits[:point]}.{digits[point:]}"
    if _SMALLEST_PLAIN_EXPONENT < point <= 0:
        return "0." + "0" * -point + digits
    exponent = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return (digits if count == 1 else f"{digits[0]}.{digits[1:]}") + exponent
