"""Diffs of narrator memories between turns.

A model writes memories, so replay cannot recompute them. Each turn records how they changed; from any turn
with known memories, those of a later turn follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sessions.model import Kept, Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["after", "decode_changes", "encode_changes", "since"]


def since(before: Sequence[Memory], now: Sequence[Memory]) -> tuple[Kept | Memory, ...] | None:
    """Return the diff of two lists of memories, unchanged ones as slices; None if nothing changed."""
    if tuple(before) == tuple(now):
        return None
    places: dict[Memory, int] = {memory: place for place, memory in enumerate(before)}
    changes: list[Kept | Memory] = []
    for memory in now:
        place = places.get(memory)
        last = changes[-1] if changes else None
        if place is None:
            changes.append(memory)
        elif isinstance(last, Kept) and last.stop == place:
            changes[-1] = Kept(last.start, place + 1)
        else:
            changes.append(Kept(place, place + 1))
    return tuple(changes)


def after(before: Sequence[Memory], changes: Iterable[Kept | Memory] | None) -> tuple[Memory, ...]:
    """Apply a diff to a list of memories."""
    if changes is None:
        return tuple(before)
    now: list[Memory] = []
    for change in changes:
        now.extend(before[change.start : change.stop] if isinstance(change, Kept) else (change,))
    return tuple(now)


def encode_changes(changes: Iterable[Kept | Memory] | None) -> list[Any] | None:
    """Encode a diff as JSON: `[start, stop]` for an unchanged slice, an object for a new memory."""
    if changes is None:
        return None
    return [
        [change.start, change.stop]
        if isinstance(change, Kept)
        else {name: getattr(change, name) for name in Memory.__dataclass_fields__}
        for change in changes
    ]


def decode_changes(value: Iterable[Any] | None) -> tuple[Kept | Memory, ...] | None:
    """Decode the JSON of a diff."""
    if value is None:
        return None
    return tuple(Memory(**item) if isinstance(item, dict) else Kept(*item) for item in value)
