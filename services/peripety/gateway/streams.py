"""Event streams: reading them to the end, or leaving them early without leaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from peripety.errors import InternalError
from peripety.gateway.model import (
    Completed,
    Reasoning,
    ReasoningDelta,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)

if TYPE_CHECKING:
    from peripety.gateway.model import Completion, GatewayEvent, Part

__all__ = ["completion_of", "following", "told_again"]

_DELTA_CHARACTERS = 512

T = TypeVar("T")


@asynccontextmanager
async def following(events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close `events` when the block ends, so that a call behind it ends at once (cf.

    `contextlib.aclosing`).
    """
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def completion_of(events: AsyncIterator[GatewayEvent]) -> Completion:
    """Read an answer to its end and return it whole."""
    completion: Completion | None = None
    async with following(events):
        async for event in events:
            if isinstance(event, Completed):
                completion = event.completion
    if completion is None:
        raise InternalError("event stream ended without a Completed event")
    return completion


def told_again(completion: Completion) -> Iterator[GatewayEvent]:
    """Yield an existing answer as a stream of events."""
    for part in completion.message.parts:
        yield from _deltas(part)
    yield Completed(completion)


def _deltas(part: Part) -> Iterator[GatewayEvent]:
    match part:
        case Text():
            yield from map(TextDelta, _pieces(part.text))
        case Reasoning():
            yield from map(ReasoningDelta, _pieces(part.text))
        case ToolCall():
            yield ToolCallDelta(part.call_id, part.arguments, part.name)


def _pieces(text: str) -> list[str]:
    return [text[start : start + _DELTA_CHARACTERS] for start in range(0, len(text), _DELTA_CHARACTERS)]
