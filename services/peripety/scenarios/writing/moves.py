"""Adjusted numbers of a document that later answers have not changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.scenarios.parts import part_at, parts
from peripety.sim.schema import pointer, segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.scenarios.model import NumberEdit

__all__ = ["still_moved"]


def still_moved(
    moved: Iterable[NumberEdit], before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[NumberEdit, ...]:
    """Return the moves of a document that are still present in its successor, with their new paths.

    Args:
        moved: the moved numbers.
        before: the document.
        after: its successor. A number with another value was rewritten, and no longer counts as moved.
    """
    present = {part.name: part for part in parts(after)}
    still = []
    for edit in moved:
        was = part_at(before, edit.path)
        now = present.get(was.name) if was else None
        if was and now:
            inside = segments(edit.path)[len(segments(was.path)) :]
            if _inside(now.value, inside) == edit.after:
                still.append(replace(edit, path=now.path + pointer(inside)))
    return tuple(still)


def _inside(value: Any, place: Iterable[str]) -> Any:
    """Return the value at a path; None if it does not exist."""
    for segment in place:
        if isinstance(value, dict):
            value = value.get(segment)
        elif isinstance(value, list) and segment.isdecimal() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return None
    return value
