"""A narrative chunk passes through few async generators between the gateway and the RPC handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2 as pb
from peripety.core.concurrency import closing
from peripety.core.config import Config
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache.caching_gateway import CachingModelGateway
from peripety.gateway.response_cache.tiers import MemoryTier, ResponseCache
from peripety.gateway.types.response import TextDelta
from support.engine.specs import action, document
from support.gateway.fake_gateway import FakeGateway, OneProvider, TracingProvider, waiting_generators
from support.session.sessions import new_id, outcome, servicer, table

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent


MAX_GENERATORS_PER_CHUNK = 8
SESSION_PART = [
    "Narrator.narrate",
    "TurnRunner.run",
    "SessionServicer.TakeTurn",
]
TRANSPORT_PART = ["HttpTransport._stream"]
"""Below the provider, which the test replaces."""


class TracingGateway(FakeGateway):
    """Records the async generators that wait for each piece of text."""

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        self.paths: list[list[str]] = []
        async with closing(super().stream(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    self.paths.append(waiting_generators()[1:])
                yield event


async def test_a_narrative_chunk_climbs_three_generators_of_the_session(tmp_path: Path) -> None:
    answer = outcome("It is told, piece by piece.")
    gateway = TracingGateway([answer[:30], answer[30:40], answer[40:]])
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


async def test_a_chunk_climbs_few_generators_from_the_bytes_of_the_provider_to_the_handler(
    tmp_path: Path,
) -> None:
    answer = outcome("It is told, piece by piece.")
    provider = TracingProvider(answer[:30], answer[30:40], answer[40:])
    inner = LocalModelGateway(OneProvider(provider), CallExecutor(Config()))
    cache = ResponseCache(MemoryTier(1_000), [], ttl=60, clock=lambda: 0.0)
    gateway = CachingModelGateway(inner, cache, lambda _request: AnswerSource("generic", "m", ""))
    spec = document(actions=[action("act")])
    async with table(f"sqlite:///{tmp_path}/peripety.db", spec, gateway) as game:
        request = pb.TakeTurnRequest(session_id=game.session_id, request_id=new_id(), expected_turn=1)
        responses = [response.event async for response in servicer(game).TakeTurn(request, None)]
    assert any(event.HasField("narrative_chunk") for event in responses)
    assert provider.paths
    for path in provider.paths:
        assert path[-len(SESSION_PART) :] == SESSION_PART
        assert len(TRANSPORT_PART) + len(path) <= MAX_GENERATORS_PER_CHUNK
