"""Where the markers of a prompt stand: few, at the ends of what stays the same."""

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
"""Positions from one marker to the next in what was appended: fewer than a marker looks back over."""


def place_markers(rules: CacheRules, blocks: Sequence[Block], known: int) -> list[int]:
    """Return the blocks that get a marker, in the order of the prompt.

    In the order of what they are worth, as far as the provider takes so many:

    1. the newest message, from where the next request goes on;
    2. when more was appended than a marker looks back over, a message on the way to what is cached;
    3. the system text, which other conversations share;
    4. the message before the newest: what is left when that one is asked in another way;
    5. the tools;
    6. further messages on the way to what is cached.

    Args:
        rules: how the model's prompts are cached.
        blocks: the prompt.
        known: the last block whose prefix is believed to be cached; -1 for none.
    """
    ends = _ends(rules, blocks)
    tools, system, messages = (
        [end for end in ends if blocks[end].section is section]
        for section in (CacheBlock.TOOLS, CacheBlock.SYSTEM, CacheBlock.MESSAGE)
    )
    if rules.kind is CacheKind.AUTOMATIC_BREAKPOINTS:
        # The newest message is marked by the provider, which counts that as one of the markers.
        wanted, most = [*system, *messages[-2:-1]], rules.max_breakpoints - 1
    else:
        steps = list(_steps(blocks, messages, known))
        wanted = [*messages[-1:], *steps[:1], *system, *messages[-2:-1], *tools, *steps[1:]]
        most = rules.max_breakpoints
    return sorted(list(dict.fromkeys(wanted))[:most])


def _ends(rules: CacheRules, blocks: Sequence[Block]) -> list[int]:
    """The last block of the tools, of the system text and of each message that can have a marker."""
    last = {(block.section, block.message): number for number, block in enumerate(blocks) if block.markable}
    return [number for number in last.values() if blocks[number].tokens >= rules.minimum_tokens]


def _steps(blocks: Sequence[Block], messages: Sequence[int], known: int) -> Iterator[int]:
    """The ends of messages by which the newest is reached from what is known, in steps of few positions."""
    stops = [end for end in messages if end >= known]
    reached = blocks[known].position if known >= 0 else -1
    for stop, following in pairwise(stops):
        if blocks[following].position - reached > _SPACING:
            yield stop
            reached = blocks[stop].position
