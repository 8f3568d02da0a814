"""Depth of a stream: how many async generators each chunk of an answer passes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.config import Config
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache.caching_gateway import CachingModelGateway
from peripety.gateway.response_cache.tiers import MemoryTier, ResponseCache
from peripety.gateway.types.message import ChatMessage, Text
from peripety.gateway.types.request import Budget, GenerateRequest, ResponseSchema
from peripety.gateway.types.response import StopReason, TextDelta, Usage
from support.gateway.fake_gateway import FakeProvider, OneProvider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.providers.provider import ProviderCall, ProviderEvent


MAX_GENERATORS = 4
"""Provider, call executor, fallback chain, validation or time limit; not the response cache."""


class MeasuringProvider(FakeProvider):
    """Records the async generators that wait for its next chunk, itself included."""

    def __init__(self) -> None:
        super().__init__(())
        self.generators: list[str] = []

    async def stream(self, call: ProviderCall) -> AsyncIterator[ProviderEvent]:
        frame = inspect.currentframe()
        while frame is not None:
            if frame.f_code.co_flags & inspect.CO_ASYNC_GENERATOR:
                self.generators.append(frame.f_code.co_qualname)
            frame = frame.f_back
        yield TextDelta("{}")
        yield AnswerFinished((Text("{}"),), StopReason.END, Usage(5, 2), call.model)


@pytest.mark.parametrize(
    "options",
    [{}, {"schema": ResponseSchema("o", {"type": "object"})}, {"budget": Budget(max_seconds=60)}],
    ids=["text", "schema", "time limit"],
)
async def test_a_chunk_passes_at_most_four_generators(options: dict[str, Any]) -> None:
    provider = MeasuringProvider()
    inner = LocalModelGateway(OneProvider(provider), CallExecutor(Config()))
    cache = ResponseCache(MemoryTier(1_000), [], ttl=60, clock=lambda: 0.0)
    gateway = CachingModelGateway(inner, cache, lambda _request: AnswerSource("generic", "m", ""))
    request = GenerateRequest(None, (ChatMessage.user("u"),), **options)
    assert (await gateway.generate(request)).text == "{}"
    assert provider.generators[0] == "MeasuringProvider.stream"
    assert len(provider.generators) <= MAX_GENERATORS
