"""Placement of cache breakpoints: few, at the ends of stable prefixes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from peripety.gateway.catalogue import CacheKind
from peripety.gateway.model import CacheBlock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.gateway.catalogue import CacheRules
    from peripety.gateway.prompt_cache.prompt import Block

__all__ = ["place_markers"]

_SPACING = 15
"""Positions between two markers in appended messages; less than the lookback of a marker."""


def place_markers(rules: CacheRules, blocks: Sequence[Block], known: int) -> list[int]:
    """Return the indices of the blocks that get a marker, in the order of the prompt.

    In order of priority, up to the provider's maximum:

    1. the newest message, where the next request continues;
    2. if more was appended than the lookback of a marker, a message between it and the cached prefix;
    3. the system text, which other conversations share;
    4. the message before the newest, which remains if the newest is rephrased;
    5. the tools;
    6. further messages between the newest and the cached prefix.

    Args:
        rules: the prompt-cache rules of the model.
        blocks: the prompt.
        known: index of the last block whose prefix is assumed to be cached; -1 for none.
    """
    ends = _ends(rules, blocks)
    tools, system, messages = (
        [end for end in ends if blocks[end].section is section]
        for section in (CacheBlock.TOOLS, CacheBlock.SYSTEM, CacheBlock.MESSAGE)
    )
    if rules.kind is CacheKind.AUTOMATIC_BREAKPOINTS:
        # The provider marks the newest message itself and counts that as one of the markers.
        wanted, most = [*system, *messages[-2:-1]], rules.max_breakpoints - 1
    else:
        steps = list(_steps(blocks, messages, known))
        wanted = [*messages[-1:], *steps[:1], *system, *messages[-2:-1], *tools, *steps[1:]]
        most = rules.max_breakpoints
    return sorted(list(dict.fromkeys(wanted))[:most])


def _ends(rules: CacheRules, blocks: Sequence[Block]) -> list[int]:
    """Return the last markable block of the tools, of the system text and of each message."""
    last = {(block.section, block.message): number for number, block in enumerate(blocks) if block.markable}
    return [number for number in last.values() if blocks[number].tokens >= rules.minimum_tokens]


def _steps(blocks: Sequence[Block], messages: Sequence[int], known: int) -> Iterator[int]:
    """Yield the ends of messages between the cached prefix and the newest, each within the lookback."""
    stops = [end for end in messages if end >= known]
    reached = blocks[known].position if known >= 0 else -1
    for stop, following in pairwise(stops):
        if blocks[following].position - reached > _SPACING:
            yield stop
            reached = blocks[stop].position
