"""Narrator memories of a session: their owners, size limits, eviction order, and diffs between turns.

The narrator writes memories, and the program decides which to store. No call returns them to a player. Only
a later narration reads them, limited to what its audience may know.

Replay cannot recompute texts of a model. Each turn therefore records how the memories changed; from any
turn with known memories, those of a later turn follow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.session.types import FACT, NarratorMemory, UnchangedMemories

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


WORLD = "world"
"""Owner of facts that are about no entity."""
MAX_FACTS_PER_TURN = 3
MAX_BYTES_PER_OWNER = 2 * 1024
"""Maximum size of the memories of one entity: UTF-8 bytes of scope and content. Facts are counted apart."""
MAX_BYTES_OF_FACTS = 16 * 1024
"""Maximum size of all facts of a session."""
MAX_BYTES = 16 * 1024
"""Maximum size of all memories of a session, apart from facts."""


def add_memories(
    memories: Iterable[NarratorMemory],
    updates: Iterable[Mapping[str, Any]],
    turn: int,
    entity_ids: Collection[str],
    audience: str | None = None,
) -> tuple[NarratorMemory, ...]:
    """Return the memories after a turn, oldest first.

    A memory replaces an identical earlier one, and a fact with a subject the earlier one about it. If the
    limits are exceeded, the oldest memories are evicted.
    The result is deterministic.

    Args:
        memories: the memories before the turn, oldest first.
        updates: `hidden_memory_updates` of a valid Outcome. Updates for unknown entities are ignored, and so
            are facts after the first `MAX_FACTS_PER_TURN`; a fact may belong to `WORLD`.
        turn: the turn.
        entity_ids: ids of the scenario's entities.
        audience: the entity that the turn was narrated for; None for everyone.
    """
    written = [
        NarratorMemory(
            turn,
            update["scope"],
            update["target_id"],
            update["content"],
            update["visibility"],
            audience,
        )
        for update in updates
        if update["target_id"] in {*entity_ids, WORLD}
    ]
    surplus = [memory for memory in written if memory.is_fact][MAX_FACTS_PER_TURN:]
    written = [memory for memory in written if memory not in surplus]
    written = [memory for memory in written if memory.owner in entity_ids or memory.is_fact]
    return _evict_oldest(_drop_replaced([*memories, *written]))


def memories_for(memories: Iterable[NarratorMemory], viewer: str | None) -> tuple[NarratorMemory, ...]:
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


def _drop_replaced(memories: Iterable[NarratorMemory]) -> list[NarratorMemory]:
    """Return the memories without those that a later one with the same readers replaces."""
    last: dict[NarratorMemory, NarratorMemory] = {}
    for memory in memories:
        said = replace(memory, turn=0)
        if memory.subject:
            said = replace(said, scope=f"{FACT}:{memory.subject}", content="")
        last.pop(said, None)
        last[said] = memory
    return list(last.values())


def _evict_oldest(memories: Sequence[NarratorMemory]) -> tuple[NarratorMemory, ...]:
    """Return the newest memories that fit the limits per owner, of facts, and in total."""
    facts = sum(map(_size, (each for each in memories if each.is_fact)))
    # Facts are evicted a quarter at a time: prompts begin with them, and are cached as long as they stay.
    most_facts = MAX_BYTES_OF_FACTS if facts <= MAX_BYTES_OF_FACTS else MAX_BYTES_OF_FACTS * 3 // 4
    kept: list[NarratorMemory] = []
    in_all = 0
    by_owner: dict[str | None, int] = {}
    full: set[str | None] = set()
    for memory in reversed(memories):
        owner, limit = (None, most_facts) if memory.is_fact else (memory.owner, MAX_BYTES_PER_OWNER)
        used = by_owner.get(owner, 0) + _size(memory)
        if owner in full or used > limit:
            # A shorter but older memory must not survive a newer, longer one.
            full.add(owner)
            continue
        if owner is not None:
            if in_all + _size(memory) > MAX_BYTES:
                # Of the older memories, only facts remain.
                in_all = MAX_BYTES
                continue
            in_all += _size(memory)
        by_owner[owner] = used
        kept.append(memory)
    return tuple(reversed(kept))


def _size(memory: NarratorMemory) -> int:
    return len(memory.scope.encode()) + len(memory.content.encode())


def diff_memories(
    before: Sequence[NarratorMemory],
    now: Sequence[NarratorMemory],
) -> tuple[UnchangedMemories | NarratorMemory, ...] | None:
    """Return the diff of two lists of memories, unchanged ones as slices; None if nothing changed."""
    if tuple(before) == tuple(now):
        return None
    places: dict[NarratorMemory, int] = {memory: place for place, memory in enumerate(before)}
    changes: list[UnchangedMemories | NarratorMemory] = []
    for memory in now:
        place = places.get(memory)
        last = changes[-1] if changes else None
        if place is None:
            changes.append(memory)
        elif isinstance(last, UnchangedMemories) and last.stop == place:
            changes[-1] = UnchangedMemories(last.start, place + 1)
        else:
            changes.append(UnchangedMemories(place, place + 1))
    return tuple(changes)


def apply_diff(
    before: Sequence[NarratorMemory],
    changes: Iterable[UnchangedMemories | NarratorMemory] | None,
) -> tuple[NarratorMemory, ...]:
    """Apply a diff to a list of memories."""
    if changes is None:
        return tuple(before)
    now: list[NarratorMemory] = []
    for change in changes:
        now.extend(before[change.start : change.stop] if isinstance(change, UnchangedMemories) else (change,))
    return tuple(now)


def encode_diff(changes: Iterable[UnchangedMemories | NarratorMemory] | None) -> list[Any] | None:
    """Encode a diff as JSON: `[start, stop]` for an unchanged slice, an object for a new memory."""
    if changes is None:
        return None
    return [
        [change.start, change.stop]
        if isinstance(change, UnchangedMemories)
        else {name: getattr(change, name) for name in NarratorMemory.__dataclass_fields__}
        for change in changes
    ]


def decode_diff(value: Iterable[Any] | None) -> tuple[UnchangedMemories | NarratorMemory, ...] | None:
    """Decode the JSON of a diff."""
    if value is None:
        return None
    return tuple(
        NarratorMemory(**item) if isinstance(item, dict) else UnchangedMemories(*item) for item in value
    )
