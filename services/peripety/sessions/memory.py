"""What is remembered in a session: for whom, how much of it, and what is forgotten first.

A narrator writes memories, a program decides about them. No call shows them to a player; they reach nobody
but a later narrator, and it only what its audience may know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Finding
from peripety.sessions.model import Memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = ["MOST_BYTES", "MOST_BYTES_OF_AN_OWNER", "objections_to", "recalled", "remember"]

MOST_BYTES_OF_AN_OWNER = 2 * 1024
"""How much one entity remembers: UTF-8 of scope and content."""
MOST_BYTES = 16 * 1024
"""How much is remembered in a session."""

_SHOWN_CHARACTERS = 64


def objections_to(updates: Sequence[Mapping[str, Any]], cast: Collection[str]) -> list[Finding]:
    """What is wrong with the memories that a narrator wants written, beyond their schema.

    Args:
        updates: `hidden_memory_updates` of an Outcome.
        cast: the ids of the scenario's entities.
    """
    return [
        Finding(
            "UNKNOWN_ENTITY",
            f"/hidden_memory_updates/{index}/target_id",
            f"nobody is called '{update['target_id'][:_SHOWN_CHARACTERS]}'; name an entity of the scenario",
        )
        for index, update in enumerate(updates)
        if update["target_id"] not in cast
    ]


def remember(
    memories: Iterable[Memory], updates: Iterable[Mapping[str, Any]], turn: int, cast: Collection[str]
) -> tuple[Memory, ...]:
    """What is remembered after a turn, oldest first.

    What is written again takes the place of what it repeats; what finds no room any more is forgotten, the
    oldest first. The same memories and updates always leave the same.

    Args:
        memories: what was remembered before, oldest first.
        updates: `hidden_memory_updates` of a valid Outcome; those for nobody of the cast are left out.
        turn: the turn.
        cast: the ids of the scenario's entities.
    """
    written = [
        Memory(turn, update["scope"], update["target_id"], update["content"], update["visibility"])
        for update in updates
        if update["target_id"] in cast
    ]
    return _in_room(_once([*memories, *written]))


def recalled(memories: Iterable[Memory], viewer: str | None) -> tuple[Memory, ...]:
    """The memories that a viewer may know: public ones and its own, except for hidden ones.

    Args:
        memories: all of a session.
        viewer: an entity; None for those who know only what is public.
    """
    return tuple(
        memory
        for memory in memories
        if memory.visibility == "public" or (memory.visibility == "private" and memory.owner == viewer)
    )


def _once(memories: Iterable[Memory]) -> list[Memory]:
    """Without the earlier ones of those that say the same to the same readers."""
    last: dict[tuple[str, str, str, str], Memory] = {}
    for memory in memories:
        said = (memory.owner, memory.scope, memory.visibility, memory.content)
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
