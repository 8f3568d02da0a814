"""Coercions of JSONLogic: to truth values, numbers, integers and texts."""

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
    """Return the truth value: false, null, 0, "" and [] are false; everything else, including {}, is true."""
    return True if isinstance(value, dict) else bool(value)


def as_number(value: Any) -> float:
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
            return finite(float(match.group(1)))
    raise CoreError("NOT_A_NUMBER", f"{_kind(value)} is not a number here")


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list) else "the text"


def finite(value: float) -> float:
    """Return a result that a state can hold: finite, with 0 for -0."""
    if not math.isfinite(value):
        raise CoreError("NUMERIC_RANGE", "the result does not fit binary64")
    return value + 0.0  # -0 becomes 0


def check_depth(depth: int) -> None:
    """Raise if a rule nests a value deeper than a state allows."""
    if depth > MAX_DEPTH:
        raise CoreError("FUEL_EXHAUSTED", f"the expression nests values deeper than {MAX_DEPTH} levels")


def as_text(value: Any, depth: int = 0) -> str:
    """Convert to text: null is empty, booleans are words, arrays are joined with commas."""
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
    """Convert to an integer, truncated toward zero and clamped to ±2^31."""
    number = as_number(value)
    return int(max(-(2.0**31), min(2.0**31, number)))
