"""Paths of arguments, as the segments that lead to a value."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Path", "is_inside", "put"]

Path: TypeAlias = tuple[str, ...]


def is_inside(path: Path, outer: Path) -> bool:
    """Whether a value is a part of another one."""
    return len(outer) < len(path) and path[: len(outer)] == outer


def put(arguments: dict[str, Any], path: Path, value: Any) -> bool:
    """Put a value at a path; false when something is there through which no path leads."""
    at: Any = arguments
    for segment in path[:-1]:
        at = at.setdefault(segment, {})
        if not isinstance(at, dict):
            return False
    at[path[-1]] = value
    return True
