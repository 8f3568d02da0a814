"""Detection of tautologies: expectations that hold for any state."""

from __future__ import annotations

from typing import Any

from peripety import sim
from peripety.errors import PeripetyError

__all__ = ["is_truism"]

# Values of all types for the variables of an expectation.
_VALUES = (None, False, True, -1_000_003, -1, 0, 0.5, 1, 7, 1_000_003, "", "a", "ongoing", "won", "lost")


def is_truism(expect: Any) -> bool:
    """Return True if an expectation holds for any state, by trying values for its variables.

    Each value is used for all variables at once, and for each variable alone with the others missing. An
    expectation that holds in all cases depends on no variable. A case that cannot be evaluated counts as not
    holding.
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
    """Return data with a value at each path; if one path is a prefix of another, the longer one wins."""
    data: dict[str, Any] = {}
    for path, value in values.items():
        place = data
        *way, last = path.split(".")
        for key in way:
            inner = place.get(key)
            place[key] = place = inner if isinstance(inner, dict) else {}
        place[last] = value
    return data
