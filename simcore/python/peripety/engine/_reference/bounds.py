"""Bounds of numbers: what a write stores at a bounded path."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from peripety.engine.backend_protocol import EngineError
from peripety.engine.paths import Path, format_path, parse_path

if TYPE_CHECKING:
    from collections.abc import Mapping


class NumberBounds:
    """Bounds of a scenario.

    Attributes:
        limits: the least and the greatest number of each bounded path.
        holders: paths of the objects above them, which cannot be replaced.
    """

    def __init__(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        self.limits: dict[Path, tuple[float, float]] = {
            parse_path(text): (limit.get("min", -math.inf), limit.get("max", math.inf))
            for text, limit in bounds.items()
        }
        self.holders = {path[:end] for path in self.limits for end in range(1, len(path))}

    def clamp(self, path: Path, value: Any) -> Any:
        """Return the value that a write stores at a path.

        Raises:
            EngineError: `TYPE_MISMATCH`, if the path is bounded and the value is not a number, or if it holds
                bounded numbers.
        """
        if path in self.holders:
            message = f"'{format_path(path)}' holds bounded numbers and cannot be replaced"
            raise EngineError("TYPE_MISMATCH", message)
        limits = self.limits.get(path)
        if limits is None:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EngineError("TYPE_MISMATCH", f"'{format_path(path)}' is bounded and holds numbers only")
        low, high = limits
        return min(max(value, low), high)

    def clamp_members(self, path: Path, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members that a patch of a path stores, by name.

        Raises:
            EngineError: as `clamp`.
        """
        return {key: self.clamp((*path, key), members[key]) for key in sorted(members)}
