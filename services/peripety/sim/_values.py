"""Canonical JSON as Python values, for callers of the engine."""

from __future__ import annotations

import json
from typing import Any

import jiter

from peripety.sim._pure.border import MAX_SAFE_INTEGER

__all__ = ["loads"]

# An integer that is not safe has so many digits; few texts have them in a row.
_LONG = b"0" * len(str(MAX_SAFE_INTEGER))
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def loads(text: bytes) -> Any:
    """The value of canonical JSON; a number is an int when it is a safe integer, else a float.

    Canonical form writes large floats as integers; read as ints they would be other numbers than they are.
    """
    if _has_unsafe_integer(text):
        return json.loads(text, parse_int=_number)
    return jiter.from_json(text)


def _has_unsafe_integer(text: bytes) -> bool:
    """Whether there may be one: digits in a row that are more, not counting those of a fraction."""
    digits = text.translate(_DIGITS)
    start = digits.find(_LONG)
    while start >= 0:
        end = start + len(_LONG)
        is_longer = digits[end : end + 1] == b"0"
        is_fraction = text[start - 1 : start] == b"."
        if not is_fraction and (is_longer or int(text[start:end]) > MAX_SAFE_INTEGER):
            return True
        start = digits.find(_LONG, end)
    return False


def _number(literal: str) -> int | float:
    value = int(literal)
    return value if abs(value) <= MAX_SAFE_INTEGER else float(literal)
