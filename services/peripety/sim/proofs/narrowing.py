"""Refinement of abstract data at a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.sim.proofs.domain import OBJECT, Object, Value, replaced_member

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim._pure.paths import Path

__all__ = ["narrowed"]


def narrowed(data: Value, path: Path, keep: Callable[[Value], Value]) -> Value | None:
    """Restrict the values at a path; None if none is left.

    Only members of objects are refined: an abstract array item represents several items.
    """
    holders: list[Object] = []
    value = data
    for key in path:
        holder = value.object
        if value.kinds != OBJECT or holder is None or not isinstance(key, str) or key not in holder.fields:
            return data
        holders.append(holder)
        value = holder.fields[key]
    less = keep(value)
    if not less.kinds:
        return None
    if less == value:
        return data
    for holder, key in zip(reversed(holders), reversed(path), strict=True):
        less = replaced_member(holder, str(key), less)
    return less
