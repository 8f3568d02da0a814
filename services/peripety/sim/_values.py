"""Canonical JSON to Python values, for callers of the engine."""

from __future__ import annotations

import json
from typing import Any

import jiter

from peripety.sim._pure.border import MAX_SAFE_INTEGER

__all__ = ["loads"]

# An unsafe integer has at least this many digits. Few texts contain such a sequence, so the search is cheap.
_LONG = b"0" * len(str(MAX_SAFE_INTEGER))
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def loads(text: bytes) -> Any:
    """Parse canonical JSON; a number is an int if it is a safe integer, else a float.

    Canonical form writes large floats as integers. Reading them as ints would change their value in later
    arithmetic.
    """
    if _has_unsafe_integer(text):
        return json.loads(text, parse_int=_number)
    return jiter.from_json(text)


def _has_unsafe_integer(text: bytes) -> bool:
    """Return True if the text may contain an unsafe integer: a long sequence of digits outside a fraction."""
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
