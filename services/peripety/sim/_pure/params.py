"""Parameters of actions: validation and random values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure.convert import finite
from peripety.sim._pure.rng import choose, unit

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["problems", "sample"]


def problems(declared: dict[str, Any], given: Any) -> list[str]:
    """Return the violations of the declared parameters, one sentence each, by name."""
    if not isinstance(given, dict):
        return ["the parameters must be an object"]
    found = []
    for name in sorted(declared.keys() | given.keys()):
        if name not in declared:
            found.append(f"'{name}' is not a parameter of this action")
        elif name not in given:
            found.append(f"the parameter '{name}' is missing")
        else:
            problem = _problem(declared[name], given[name])
            if problem:
                found.append(f"the parameter '{name}' {problem}")
    return found


def _problem(schema: dict[str, Any], value: Any) -> str | None:
    kind = schema["type"]
    if not _is(kind, value):
        return f"must be of type {kind}"
    if "enum" in schema and not any(
        type(option) is type(value) and option == value for option in schema["enum"]
    ):
        return "is not one of the allowed values"
    if kind == "string":
        limit = schema.get("maxLength")
        return f"is longer than {int(limit)} characters" if limit is not None and len(value) > limit else None
    if kind in {"integer", "number"}:
        if "minimum" in schema and value < schema["minimum"]:
            return "is below its minimum"
        if "maximum" in schema and value > schema["maximum"]:
            return "is above its maximum"
    return None


def _is(kind: str, value: Any) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, float) and (kind == "number" or value.is_integer())


def sample(declared: dict[str, Any], next_draw: Callable[[], int]) -> dict[str, Any]:
    """Draw parameters uniformly from their domains, one draw each, in name order."""
    return {name: _sample(declared[name], next_draw()) for name in sorted(declared)}


def _sample(schema: dict[str, Any], value: int) -> Any:
    if "enum" in schema:
        return schema["enum"][choose(value, len(schema["enum"]))]
    match schema["type"]:
        case "boolean":
            return choose(value, 2) == 1
        case "string":
            return ""
        case "integer":
            low, high = int(schema["minimum"]), int(schema["maximum"])
            return float(low + choose(value, high - low + 1))
        case _:
            return finite(schema["minimum"] + unit(value) * (schema["maximum"] - schema["minimum"]))
