"""By how much quantities move away from losing, worked out once more from what docs/reference/scenarios.md says."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine import Program


BLOCK = 64
_BLOCKS = 16 if engine.BACKEND == "native" else 4
_UNIT = 2**20
_USUAL_LIMIT = 0.05
# What makes each comparison true of what stands on its left: to rise, or to fall.
_WAYS = {">": 1, ">=": 1, "<": -1, "<=": -1}


@dataclass(frozen=True)
class Measured:
    """What fresh runs show of a quantity.

    Attributes:
        path: where it stands.
        per_turn: its drift over all of them.
        noise: the standard deviation of that figure in a block of 64 runs.
        limit: the most that is allowed.
    """

    path: str
    per_turn: float
    noise: float
    limit: float

    def is_surely_above(self, runs: int) -> bool:
        """Whether it is above the limit by more than chance does to so many runs."""
        return self.per_turn - self.limit > 5 * self._error(runs)

    def is_surely_below(self, runs: int) -> bool:
        """Whether it is below the limit by more than that."""
        return self.limit - self.per_turn > 5 * self._error(runs)

    def _error(self, runs: int) -> float:
        return self.noise * (math.sqrt(BLOCK / runs) + math.sqrt(1 / _BLOCKS))


def measured_drifts(program: Program, seed: int) -> list[Measured]:
    """The drift of every quantity that has a distance from losing, on runs of a seed."""
    spec = program.spec
    scales = {path: distance for path, (_, distance) in _followed(spec).items()}
    blocks = []
    for index in range(_BLOCKS):
        report = program.dry_run(runs=BLOCK, first_run=index * BLOCK, seed=seed, detail=True, watch=scales)
        assert report.detail is not None
        blocks.append((report.turns, report.detail.moves))
    turns = sum(played for played, _ in blocks)
    limit = spec["negativity_budget"].get("max_positive_drift", _USUAL_LIMIT)
    found = []
    for path, (way, _) in _followed(spec).items():
        away = [-way * moves[path] / _UNIT for _, moves in blocks]
        each = [moved / played for moved, (played, _) in zip(away, blocks, strict=True)]
        found.append(Measured(path, sum(away) / turns, statistics.stdev(each), limit))
    return found


def _followed(spec: dict[str, Any]) -> dict[str, tuple[int, float]]:
    """For each quantity: the way to lose, and the first distance from there."""
    comparisons = [found for loss in spec["loss_conditions"] for found in _comparisons(spec, loss["when"], 1)]
    decay = spec["negativity_budget"].get("decay_per_turn", {})
    followed = {}
    for path in dict.fromkeys([*(place for place, _, _ in comparisons), *decay]):
        value = _at(spec, path)
        mine = [(way, edge) for place, way, edge in comparisons if place == path]
        ways = {way for way, _ in mine} or {-1 if decay[path] > 0 else 1}
        distances = [math.inf if edge is None else way * (edge - value) for way, edge in mine]
        if len(ways) > 1 or (distances and max(distances) < 0):
            continue
        known = [distance for distance in distances if 0 < distance < math.inf]
        followed[path] = (ways.pop(), min(known, default=max(abs(value), 1.0)))
    return followed


def _comparisons(spec: dict[str, Any], logic: Any, way: int) -> Iterator[tuple[str, int, float | None]]:
    """Each quantity that a condition compares, the way that makes the condition true, and the edge if known.

    Such conditions as random specifications and the defects planted in them have are understood, not all.
    """
    if not isinstance(logic, dict):
        return
    for operator, operands in logic.items():
        if operator in {"and", "or"}:
            for operand in operands:
                yield from _comparisons(spec, operand, way)
        elif operator == "!":
            yield from _comparisons(spec, operands[0], -way)
        elif operator in _WAYS:
            left, right = operands
            yield from _side(spec, left, right, way * _WAYS[operator])
            yield from _side(spec, right, left, -way * _WAYS[operator])


def _side(spec: dict[str, Any], side: Any, other: Any, way: int) -> Iterator[tuple[str, int, float | None]]:
    match side:
        case {"var": str(path)} if path.startswith("state."):
            yield path, way, other if isinstance(other, int | float) else None
        case {"+": [*terms]}:
            for term in terms:
                yield from ((path, way, None) for path, _, _ in _side(spec, term, None, way))


def _at(spec: dict[str, Any], path: str) -> float:
    node: Any = spec
    for key in path.split("."):
        node = node[key]
    return float(node)
