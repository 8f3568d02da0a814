"""Argument paths: the segments that lead to a value."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Path", "is_inside", "put"]

Path: TypeAlias = tuple[str, ...]


def is_inside(path: Path, outer: Path) -> bool:
    """Return True if a path leads to a part of the value at another path."""
    return len(outer) < len(path) and path[: len(outer)] == outer


def put(arguments: dict[str, Any], path: Path, value: Any) -> bool:
    """Set the value at a path; return False if a value on the way is not an object."""
    at: Any = arguments
    for segment in path[:-1]:
        at = at.setdefault(segment, {})
        if not isinstance(at, dict):
            return False
    at[path[-1]] = value
    return True
