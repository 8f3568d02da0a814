"""The guard of prefixes: where a conversation stops being a continuation of itself."""

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
"""Of one conversation; what comes later is not compared."""

_KEY_BYTES = 8
"""As much of a key is kept. A difference that this hides goes unnoticed, and nothing else depends on it."""

_ORDER = (CacheBlock.MODEL, CacheBlock.TOOLS, CacheBlock.SYSTEM, CacheBlock.MESSAGE)


class Place(NamedTuple):
    """A place in a prompt; `message` is the index of the message, from 0, when it is one."""

    block: CacheBlock
    message: int = 0


@dataclass(frozen=True, slots=True)
class _Outline:
    """As much of a prompt as later ones are compared with.

    Attributes:
        model: the model that was asked.
        keys: the beginnings of the keys of all blocks that were cached, one after the other.
        tools: how many of them were tools.
        system: how many of them were the system text.
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
    """What was cached last of each conversation; those that rested longest are forgotten first."""

    def __init__(self) -> None:
        self._outlines: Recent[str, _Outline] = Recent(_MAX_LINEAGES)

    def first_difference(self, name: str, model: str, blocks: Sequence[Block]) -> Place | None:
        """Return the first place where a prompt differs from what was cached; None when it only adds to it.

        Args:
            name: the conversation.
            model: the model that is asked.
            blocks: the prompt.
        """
        before = self._outlines.get(name)
        if before is None:
            return None
        if before.model != model:
            return Place(CacheBlock.MODEL)
        for number, block in enumerate(blocks[: len(before.keys) // _KEY_BYTES]):
            if block.key[:_KEY_BYTES] != before.key(number):
                # Where a section has lost its last block, that of the next one stands in its place.
                section = min(before.section(number), block.section, key=_ORDER.index)
                return Place(section, block.message if section is CacheBlock.MESSAGE else 0)
        return None

    def remember(self, name: str, model: str, cached: Sequence[Block]) -> None:
        """Note what is cached of a conversation now; nothing of it takes the place of nothing."""
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
