"""Prefix comparison: finds where a conversation stops extending its cached prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from peripety.gateway.model import CacheBlock
from peripety.gateway.prompt_cache.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.prompt_cache.prompt import Block

__all__ = ["Lineages", "Place"]

_MAX_LINEAGES = 2_000
_MAX_BLOCKS = 2_000
"""Per conversation; later blocks are not compared."""

_KEY_BYTES = 8
"""Stored length of a key. A collision hides a difference in a report and has no other effect."""

_ORDER = (CacheBlock.MODEL, CacheBlock.TOOLS, CacheBlock.SYSTEM, CacheBlock.MESSAGE)


class Place(NamedTuple):
    """A position in a prompt; `message` is the index of the message, from 0, in the section of messages."""

    block: CacheBlock
    message: int = 0


@dataclass(frozen=True, slots=True)
class _Outline:
    """Outline of a cached prompt, for comparison with later ones.

    Attributes:
        model: the requested model.
        keys: truncated keys of all cached blocks, concatenated.
        tools: number of tool blocks.
        system: number of system blocks.
    """

    model: str
    keys: bytes
    tools: int
    system: int

    def key(self, number: int) -> bytes:
        return self.keys[number * _KEY_BYTES : (number + 1) * _KEY_BYTES]

    def section(self, number: int) -> CacheBlock:
        if number < self.tools:
            return CacheBlock.TOOLS
        return CacheBlock.SYSTEM if number < self.tools + self.system else CacheBlock.MESSAGE


class Lineages:
    """The last cached prompt of each conversation, in LRU order."""

    def __init__(self) -> None:
        self._outlines: Recent[str, _Outline] = Recent(_MAX_LINEAGES)

    def first_difference(self, name: str, model: str, blocks: Sequence[Block]) -> Place | None:
        """Return the first difference from the cached prompt; None if the prompt only extends it.

        Args:
            name: the conversation.
            model: the requested model.
            blocks: the prompt.
        """
        before = self._outlines.get(name)
        if before is None:
            return None
        if before.model != model:
            return Place(CacheBlock.MODEL)
        for number, block in enumerate(blocks[: len(before.keys) // _KEY_BYTES]):
            if block.key[:_KEY_BYTES] != before.key(number):
                # If a section has lost its last block, the first block of the next section is at its index.
                section = min(before.section(number), block.section, key=_ORDER.index)
                return Place(section, block.message if section is CacheBlock.MESSAGE else 0)
        return None

    def remember(self, name: str, model: str, cached: Sequence[Block]) -> None:
        """Store the cached prompt of a conversation; an empty one does not replace an existing one."""
        if not cached:
            return
        cached = cached[:_MAX_BLOCKS]
        sections = [block.section for block in cached]
        self._outlines.put(
            name,
            _Outline(
                model,
                b"".join(block.key[:_KEY_BYTES] for block in cached),
                sections.count(CacheBlock.TOOLS),
                sections.count(CacheBlock.SYSTEM),
            ),
        )
