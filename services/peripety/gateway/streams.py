"""Streams of events that are closed at the end of a block."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

__all__ = ["following"]

T = TypeVar("T")


@asynccontextmanager
async def following(events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close `events` when the block ends, so that the call behind it ends at once.

    Unlike `contextlib.aclosing`, it accepts iterators that are not generators.
    """
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
