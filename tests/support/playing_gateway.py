"""A gateway that plays events as the test wrote them down."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.types.message import ChatMessage, ChatRole, Text, ToolCall
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    collect_completion,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.types.message import Part
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent


Script: TypeAlias = "list[GatewayEvent | Exception]"


class PlayingGateway:
    """Plays one script for each request, the last one again and again.

    Attributes:
        requests: what was asked.
    """

    def __init__(self, *scripts: Script) -> None:
        self._scripts = [*scripts]
        self.requests: list[GenerateRequest] = []

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        self.requests.append(request)
        for event in script:
            if isinstance(event, Exception):
                raise event
            yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))


def completion(*parts: Part, stop: StopReason = StopReason.END) -> Completion:
    """A whole answer."""
    return Completion(ChatMessage(ChatRole.ASSISTANT, parts), None, Usage(10, 5), stop, "m", "p")


def saying(*pieces: str) -> Script:
    """An answer in prose, or in JSON."""
    return [*map(TextDelta, pieces), Completed(completion(Text("".join(pieces))))]


def calling(*calls: tuple[str, str]) -> Script:
    """An answer that calls tools: their names, and their arguments as JSON."""
    made = [ToolCall(f"c{number}", *call) for number, call in enumerate(calls)]
    deltas = [ToolCallDelta(call.call_id, call.arguments, call.name) for call in made]
    return [*deltas, Completed(completion(*made, stop=StopReason.TOOL_USE))]
