"""Narrator memories of a session: their owners, size limits and eviction order.

The narrator writes memories, and the program decides which to store. No call returns them to a player. Only a
later narration reads them, limited to what its audience may know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.sessions.model import Memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = ["MOST_BYTES", "MOST_BYTES_OF_AN_OWNER", "recalled", "remember"]

MOST_BYTES_OF_AN_OWNER = 2 * 1024
"""Maximum size of the memories of one entity: UTF-8 bytes of scope and content."""
MOST_BYTES = 16 * 1024
"""Maximum size of all memories of a session."""


def remember(
    memories: Iterable[Memory],
    updates: Iterable[Mapping[str, Any]],
    turn: int,
    cast: Collection[str],
    audience: str | None = None,
) -> tuple[Memory, ...]:
    """Return the memories after a turn, oldest first.

    A memory replaces an identical earlier one. If the limits are exceeded, the oldest memories are evicted.
    The result is deterministic.

    Args:
        memories: the memories before the turn, oldest first.
        updates: `hidden_memory_updates` of a valid Outcome; updates for unknown entities are ignored.
        turn: the turn.
        cast: ids of the scenario's entities.
        audience: the entity that the turn was narrated for; None for everyone.
    """
    written = [
        Memory(turn, update["scope"], update["target_id"], update["content"], update["visibility"], audience)
        for update in updates
        if update["target_id"] in cast
    ]
    return _in_room(_once([*memories, *written]))


def recalled(memories: Iterable[Memory], viewer: str | None) -> tuple[Memory, ...]:
    """Return the memories that a viewer may know: public ones and its own, except hidden ones.

    A narration for one entity draws on the secrets of that entity, so its memories are never used for another
    entity.

    Args:
        memories: all memories of a session.
        viewer: an entity; None for the public.
    """
    return tuple(
        memory
        for memory in memories
        if memory.audience in {None, viewer}
        and (memory.visibility == "public" or (memory.visibility == "private" and memory.owner == viewer))
    )


def _once(memories: Iterable[Memory]) -> list[Memory]:
    """Return the memories without earlier duplicates that have the same content and readers."""
    last: dict[Memory, Memory] = {}
    for memory in memories:
        said = replace(memory, turn=0)
        last.pop(said, None)
        last[said] = memory
    return list(last.values())


def _in_room(memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return the newest memories that fit the limits per owner and in total."""
    kept: list[Memory] = []
    in_all = 0
    of_owner: dict[str, int] = {}
    full: set[str] = set()
    for memory in reversed(memories):
        weight = len(memory.scope.encode()) + len(memory.content.encode())
        used = of_owner.get(memory.owner, 0) + weight
        if memory.owner in full or used > MOST_BYTES_OF_AN_OWNER:
            # A shorter but older memory must not survive a newer, longer one.
            full.add(memory.owner)
            continue
        if in_all + weight > MOST_BYTES:
            break
        of_owner[memory.owner] = used
        in_all += weight
        kept.append(memory)
    return tuple(reversed(kept))
