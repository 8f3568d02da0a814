"""Completions collected from event streams and replayed as event streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import InternalError
from peripety.gateway.model.answering import Completed, ReasoningDelta, TextDelta, ToolCallDelta
from peripety.gateway.model.parts import Reasoning, Text, ToolCall
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.gateway.model.answering import Completion, GatewayEvent
    from peripety.gateway.model.parts import Part

__all__ = ["completion_of", "told_again"]

_DELTA_CHARACTERS = 512


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
