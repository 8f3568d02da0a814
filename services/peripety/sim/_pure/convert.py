"""How JSONLogic reads a value as something else: as truth, a number, an integer, a text."""

from __future__ import annotations

import math
import re
from typing import Any

from peripety.sim._core import CoreError
from peripety.sim._pure.border import MAX_DEPTH
from peripety.sim._pure.canonical import number_text

__all__ = ["as_integer", "as_number", "as_text", "check_depth", "finite", "truthy"]

_NUMERIC_TEXT = re.compile(r"[ \t\n\r]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\n\r]*")
_BLANK_TEXT = re.compile(r"[ \t\n\r]*")


def truthy(value: Any) -> bool:
    """JSONLogic's truth: false, null, 0, "" and [] are false; everything else, {} included, is true."""
    return True if isinstance(value, dict) else bool(value)


def as_number(value: Any) -> float:
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


def check_depth(depth: int) -> None:
    """Refuse a value that a rule has nested deeper than a state may be."""
    if depth > MAX_DEPTH:
        raise CoreError("FUEL_EXHAUSTED", f"the expression nests values deeper than {MAX_DEPTH} levels")


def as_text(value: Any, depth: int = 0) -> str:
    """A value as text: null is empty, booleans are words, numbers as ECMAScript has them, arrays joined."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, list):
        check_depth(depth)
        return ",".join(as_text(item, depth + 1) for item in value)
    raise CoreError("INVALID_ARGUMENTS", "an object has no text")


def as_integer(value: Any) -> int:
    """A value as a whole number, cut toward zero and to what any text is long."""
    number = as_number(value)
    return int(max(-(2.0**31), min(2.0**31, number)))
