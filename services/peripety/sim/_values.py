"""Canonical JSON as Python values, for callers of the engine."""

from __future__ import annotations

import json
from typing import Any

from peripety.sim._pure.border import MAX_SAFE_INTEGER

__all__ = ["loads"]


def loads(text: bytes) -> Any:
    """The value of canonical JSON; a number is an int when it is a safe integer, else a float.

    Canonical form writes large floats as integers; read as ints they would be other numbers than they are.
    """
    return json.loads(text, parse_int=_number)


def _number(literal: str) -> int | float:
    value = int(literal)
    return value if abs(value) <= MAX_SAFE_INTEGER else float(literal)
