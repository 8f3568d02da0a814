"""Tasks that finish in spite of cancellation, and blocking work moved off the event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["aside", "finish"]

T = TypeVar("T")

# Smaller work takes less time than the hop to a thread and back on a busy event loop.
_BRIEF_BYTES = 32 * 1024


async def aside(work: Callable[[], T], size: int) -> T:
    """Run work in a thread if it is large, else inline.

    Args:
        work: the work.
        size: number of bytes it processes.
    """
    return work() if size <= _BRIEF_BYTES else await asyncio.to_thread(work)


async def finish(work: Awaitable[T]) -> T:
    """Wait until `work` ends even if this task is cancelled meanwhile, then raise the cancellation."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved
        raise
