"""Work that a cancellation must not leave half done, and work that the event loop need not wait for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["aside", "finish"]

T = TypeVar("T")

# What goes over so little takes less than the hop to a thread and back, which waits for a busy event loop.
_BRIEF_BYTES = 32 * 1024


async def aside(work: Callable[[], T], size: int) -> T:
    """Do some work in a thread while the event loop goes on, or here if it is brief.

    Args:
        work: what to do.
        size: how many bytes it goes over.
    """
    return work() if size <= _BRIEF_BYTES else await asyncio.to_thread(work)


async def finish(work: Awaitable[T]) -> T:
    """Let `work` end even when this task is cancelled meanwhile, perhaps again, then pass that on."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody is left to hear of it
        raise
