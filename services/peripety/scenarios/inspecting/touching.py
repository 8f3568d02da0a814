"""Dependencies of rules: the paths that an expression reads, and those that an effect writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.scenarios.inspecting.model import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Path", "read_paths", "written_paths"]

Path = tuple[str | int, ...]

_ITERATORS = frozenset({"map", "filter", "reduce", "all", "some", "none"})
_UP_OR_DOWN = {"inc": 1, "dec": -1}
_BY_SIGN = {1: EdgeKind.RAISES, -1: EdgeKind.LOWERS, 0: EdgeKind.WRITES}


def read_paths(logic: Any) -> Iterator[Path]:
    """Yield the state paths that an expression reads, with repetitions."""
    if isinstance(logic, list):
        for item in logic:
            yield from read_paths(item)
    elif isinstance(logic, dict):
        for operator, given in logic.items():
            operands = given if isinstance(given, list) else [given]
            if operator == "var":
                yield from _named(operands[:1])
            elif operator in {"missing", "missing_some"}:
                yield from _named(operands)
            # The expression for each element can read only that element.
            yield from read_paths([*operands[:1], *operands[2:]] if operator in _ITERATORS else operands)


def written_paths(effect: Mapping[str, Any], signs: Mapping[str, int]) -> Iterator[tuple[Path, EdgeKind]]:
    """Yield the paths that an effect writes, with the kind of the write; none for logs and schedules.

    Args:
        effect: the effect.
        signs: the signs of the derived values in scope.
    """
    if "path" not in effect:
        return
    path, value = sim.parse_path(effect["path"]), effect.get("value")
    if effect["op"] == "patch" and isinstance(value, dict):
        for key in value:
            yield (*path, key), EdgeKind.WRITES
    else:
        yield path, _BY_SIGN[_UP_OR_DOWN.get(effect["op"], 0) * _sign(value, signs)]


def _named(operands: list[Any]) -> Iterator[Path]:
    """Yield the state variables among operands."""
    for operand in operands:
        if isinstance(operand, list):
            yield from _named(operand)
        elif isinstance(operand, str):
            path = sim.parse_path(sim.variable_path(operand)) if operand else ()
            if path[:1] == ("state",):
                yield path


def _sign(value: Any, signs: Mapping[str, int]) -> int:
    if isinstance(value, str):
        return signs.get(value, 0)
    if isinstance(value, (int, float)):
        return (value > 0) - (value < 0)
    return 0
