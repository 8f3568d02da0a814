"""Cache breakpoints as `cache_control` markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.model import CacheBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.gateway.model import CacheBreakpoint
    from peripety.gateway.providers.anthropic.turns import Block

__all__ = ["mark"]

_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


def mark(
    breakpoints: Iterable[CacheBreakpoint],
    tools: Sequence[Block],
    system: Sequence[Block],
    messages: Sequence[Sequence[Block]],
) -> None:
    """Put a marker on the last block before each breakpoint that can carry one.

    A marker adds a key to an existing block; the content compared with the cache does not depend on markers.
    A breakpoint without a suitable block is dropped.
    """
    for breakpoint_ in breakpoints:
        match breakpoint_.block:
            case CacheBlock.TOOLS:
                blocks = tools
            case CacheBlock.SYSTEM:
                blocks = system
            case CacheBlock.MESSAGE:
                blocks = messages[breakpoint_.message_index]
        carriers = [block for block in blocks if block.get("type") not in _UNMARKABLE]
        if carriers:
            carriers[-1]["cache_control"] = {"type": "ephemeral", "ttl": breakpoint_.ttl.value}
