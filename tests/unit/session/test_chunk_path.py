"""A narrative chunk passes through few async generators between the gateway and the RPC handler."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2 as pb
from peripety.core.concurrency import closing
from peripety.gateway.types.response import TextDelta
from support.engine.specs import action, document
from support.session.sessions import ScriptedGateway, new_id, outcome, servicer, table

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent


SESSION_PART = [
    "Narrator.narrate",
    "TurnRunner.run",
    "SessionServicer.TakeTurn",
]


class TracingGateway(ScriptedGateway):
    """Records the async generators that wait for each piece of text."""

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        self.paths: list[list[str]] = []
        async with closing(super().stream(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    self.paths.append(waiting_generators())
                yield event


def waiting_generators() -> list[str]:
    """Return the names of the async generators above the caller, innermost first."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    names, frame = [], frame.f_back.f_back
    while frame is not None:
        if frame.f_code.co_flags & inspect.CO_ASYNC_GENERATOR:
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names


async def test_a_narrative_chunk_climbs_three_generators_of_the_session(tmp_path: Path) -> None:
    answer = outcome("It is told, piece by piece.")
    gateway = TracingGateway([[answer[:30], answer[30:40], answer[40:]]])
    spec = document(actions=[action("act")])
    async with table(f"sqlite:///{tmp_path}/peripety.db", spec, gateway) as game:
        request = pb.TakeTurnRequest(
            session_id=game.session_id,
            request_id=new_id(),
            expected_turn=1,
            input="words",
        )
        responses = [response.event async for response in servicer(game).TakeTurn(request, None)]
    chunks = [event.narrative_chunk.text for event in responses if event.HasField("narrative_chunk")]
    assert "".join(chunks) == "It is told, piece by piece."
    assert len(chunks) > 1
    assert gateway.paths == [SESSION_PART] * 3
