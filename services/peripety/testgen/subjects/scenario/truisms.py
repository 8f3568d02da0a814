"""Expectations that hold whatever a scenario does."""

from __future__ import annotations

from typing import Any

from peripety import sim
from peripety.errors import PeripetyError

__all__ = ["is_truism"]

# What an expectation may look at, at its widest: whatever it says of these, it says of anything.
_VALUES = (None, False, True, -1_000_003, -1, 0, 0.5, 1, 7, 1_000_003, "", "a", "ongoing", "won", "lost")


def is_truism(expect: Any) -> bool:
    """Whether an expectation holds for any state: without variables, or for every value of all of them.

    Each value is put in the place of all variables at once, and of each alone where the others are absent: an
    expectation that holds throughout says nothing about what it looks at. One that cannot be evaluated for
    some values does not hold for them.
    """
    variables = sorted(_variables(expect))
    if not variables:
        return _holds(expect, {})
    for value in _VALUES:
        if not _holds(expect, _data(dict.fromkeys(variables, value))):
            return False
        if any(not _holds(expect, _data({name: value})) for name in variables):
            return False
    return True


def _holds(expect: Any, data: Any) -> bool:
    try:
        return bool(sim.evaluate({"!!": [expect]}, data))
    except PeripetyError:
        return False


def _variables(part: Any) -> set[str]:
    if isinstance(part, list):
        return set().union(*map(_variables, part)) if part else set()
    if not isinstance(part, dict):
        return set()
    found: set[str] = set()
    for name, operands in part.items():
        if name == "var":
            path = operands[0] if isinstance(operands, list) and operands else operands
            if isinstance(path, str):
                found.add(path)
        found |= _variables(operands)
    return found


def _data(values: dict[str, Any]) -> Any:
    """Data in which each path has its value; where one leads through another, the longer one wins."""
    data: dict[str, Any] = {}
    for path, value in values.items():
        place = data
        *way, last = path.split(".")
        for key in way:
            inner = place.get(key)
            place[key] = place = inner if isinstance(inner, dict) else {}
        place[last] = value
    return data
