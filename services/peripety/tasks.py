"""Work that a cancellation must not leave half done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["finish"]

T = TypeVar("T")


async def finish(work: Awaitable[T]) -> T:
    """Let `work` end even when this task is cancelled meanwhile, then pass the cancellation on."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody is left to hear of it
        raise
