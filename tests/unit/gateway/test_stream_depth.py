"""Depth of a stream: how many async generators each chunk of an answer passes."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.core.config import Config
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache.caching_gateway import CachingModelGateway
from peripety.gateway.response_cache.tiers import MemoryTier, ResponseCache
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import Budget, GenerateRequest, ResponseSchema
from support.gateway.fake_gateway import OneProvider, TracingProvider

MAX_GENERATORS = 4
"""Provider, call executor, fallback chain, validation or time limit; not the response cache."""


@pytest.mark.parametrize(
    "options",
    [{}, {"schema": ResponseSchema("o", {"type": "object"})}, {"budget": Budget(max_seconds=60)}],
    ids=["text", "schema", "time limit"],
)
async def test_a_chunk_passes_at_most_four_generators(options: dict[str, Any]) -> None:
    provider = TracingProvider("{}")
    inner = LocalModelGateway(OneProvider(provider), CallExecutor(Config()))
    cache = ResponseCache(MemoryTier(1_000), [], ttl=60, clock=lambda: 0.0)
    gateway = CachingModelGateway(inner, cache, lambda _request: AnswerSource("generic", "m", ""))
    request = GenerateRequest(None, (ChatMessage.user("u"),), **options)
    assert (await gateway.generate(request)).text == "{}"
    (path,) = provider.paths
    assert path[0] == "TracingProvider.stream"
    assert len(path) <= MAX_GENERATORS
