"""What is remembered in a session: for whom, how much of it, and what is forgotten first.

A narrator writes memories, a program decides about them. No call shows them to a player; they reach nobody
but a later narrator, and it only what its audience may know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.sessions.model import Memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = ["MOST_BYTES", "MOST_BYTES_OF_AN_OWNER", "recalled", "remember"]

MOST_BYTES_OF_AN_OWNER = 2 * 1024
"""How much one entity remembers: UTF-8 of scope and content."""
MOST_BYTES = 16 * 1024
"""How much is remembered in a session."""


def remember(
    memories: Iterable[Memory],
    updates: Iterable[Mapping[str, Any]],
    turn: int,
    cast: Collection[str],
    audience: str | None = None,
) -> tuple[Memory, ...]:
    """What is remembered after a turn, oldest first.

    What is written again takes the place of what it repeats; what finds no room any more is forgotten, the
    oldest first. The same memories and updates always leave the same.

    Args:
        memories: what was remembered before, oldest first.
        updates: `hidden_memory_updates` of a valid Outcome; those for nobody of the cast are left out.
        turn: the turn.
        cast: the ids of the scenario's entities.
        audience: for whom the turn was narrated; None for everyone.
    """
    written = [
        Memory(turn, update["scope"], update["target_id"], update["content"], update["visibility"], audience)
        for update in updates
        if update["target_id"] in cast
    ]
    return _in_room(_once([*memories, *written]))


def recalled(memories: Iterable[Memory], viewer: str | None) -> tuple[Memory, ...]:
    """The memories that a viewer may know: public ones and its own, except for hidden ones.

    Whoever narrates for one entity knows its secrets, now and later: what they wrote is for no other one.

    Args:
        memories: all of a session.
        viewer: an entity; None for those who know only what is public.
    """
    return tuple(
        memory
        for memory in memories
        if memory.audience in {None, viewer}
        and (memory.visibility == "public" or (memory.visibility == "private" and memory.owner == viewer))
    )


def _once(memories: Iterable[Memory]) -> list[Memory]:
    """Without the earlier ones of those that say the same to the same readers."""
    last: dict[Memory, Memory] = {}
    for memory in memories:
        said = replace(memory, turn=0)
        last.pop(said, None)
        last[said] = memory
    return list(last.values())


def _in_room(memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Without the oldest ones of owners, and of all, that remember too much."""
    kept: list[Memory] = []
    in_all = 0
    of_owner: dict[str, int] = {}
    full: set[str] = set()
    for memory in reversed(memories):
        weight = len(memory.scope.encode()) + len(memory.content.encode())
        used = of_owner.get(memory.owner, 0) + weight
        if memory.owner in full or used > MOST_BYTES_OF_AN_OWNER:
            # Nothing older stays in the place of what is newer but longer.
            full.add(memory.owner)
            continue
        if in_all + weight > MOST_BYTES:
            break
        of_owner[memory.owner] = used
        in_all += weight
        kept.append(memory)
    return tuple(reversed(kept))
