"""Following streams of events to their end, or leaving them early without leaving anything open."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from peripety.errors import InternalError
from peripety.gateway.model import Completed

if TYPE_CHECKING:
    from peripety.gateway.model import Completion, GatewayEvent

__all__ = ["completion_of", "following"]

T = TypeVar("T")


@asynccontextmanager
async def following(events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close `events` when the block ends, however it ends: a call behind it is then over at once."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def completion_of(events: AsyncIterator[GatewayEvent]) -> Completion:
    """Follow an answer to its end and return it whole."""
    completion: Completion | None = None
    async with following(events):
        async for event in events:
            if isinstance(event, Completed):
                completion = event.completion
    if completion is None:
        raise InternalError("A stream of events ended without its last one")
    return completion
