"""Streams of events that are closed at the end of a block."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

__all__ = ["following"]

T = TypeVar("T")


@asynccontextmanager
async def following(events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close `events` when the block ends, however it ends: a call behind it is then over at once."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
