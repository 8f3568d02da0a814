"""Features of Gemini and Ollama alone, over HTTP."""

from __future__ import annotations

import json

import pytest

from peripety.core.config import ProviderName
from peripety.errors import ResourceExhaustedError
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest
from peripety.llmsim.provider_rules import models
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.fake_server import Reply, Request, upstream
from support.gateway.providers import KEY, PROVIDERS, config_of, gateway_of
from support.llmsim.simulator import served

SPOKEN = {spoken.name: spoken for spoken in PROVIDERS}
GEMINI, OLLAMA = SPOKEN[ProviderName.GEMINI], SPOKEN[ProviderName.OLLAMA]
LONG = "All gauges are read twice. " * 2000
QUESTION = GenerateRequest("s", (ChatMessage.user("a"),))


async def test_the_key_of_gemini_is_in_a_header_and_nowhere_else() -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]}

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.stream(f"data: {json.dumps(chunk)}\r\n\r\n".encode())

    async with upstream(answer) as server, gateway_of(GEMINI, server.base_url) as gateway:
        assert (await gateway.generate(QUESTION)).text == "b"
    (request,) = server.requests
    assert request.line == f"POST /v1beta/models/{GEMINI.model}:streamGenerateContent?alt=sse HTTP/1.1"
    assert request.headers["x-goog-api-key"] == KEY
    assert [value for value in request.headers.values() if KEY in value] == [KEY]
    assert KEY.encode() not in request.raw


async def test_gemini_counts_the_tokens_that_it_then_reads() -> None:
    with served(ScriptBuilder().default_response("b").build()) as server:
        providers = ProviderRegistry(config_of(GEMINI, server.url))
        provider, call = providers.select(QUESTION)
        counted = await provider.count_tokens(call)
        await providers.aclose()
        async with gateway_of(GEMINI, server.url) as gateway:
            assert (await gateway.generate(QUESTION)).usage.input_tokens == counted


async def test_when_to_come_back_is_read_from_the_body_of_geminis_error() -> None:
    limited = {"type": "rate_limit", "retry_after": 90}
    with served(ScriptBuilder().respond_to_any(failure=limited).build()) as server:
        async with gateway_of(GEMINI, server.url) as gateway:
            with pytest.raises(ResourceExhaustedError) as caught:
                await gateway.generate(QUESTION)
    assert caught.value.retry_after == 90


async def test_ollama_reads_the_whole_of_a_long_prompt() -> None:
    said = (ChatMessage.user(LONG), ChatMessage.assistant("b"), ChatMessage.user("c"))
    with served(ScriptBuilder().default_response("d").build()) as server:
        async with gateway_of(OLLAMA, server.url) as gateway:
            completion = await gateway.generate(GenerateRequest("s", said, max_output_tokens=10))
    assert completion.usage.input_tokens > models.count_tokens(LONG) > 4096
