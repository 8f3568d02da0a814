"""The size of prompts: counted by providers that do, else estimated; over gRPC and over HTTP."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import InvalidArgumentError, NotFoundError
from support.gateway.providers import PROVIDERS, Spoken, channel_to
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceAsyncStub
    from support.llmsim.simulator import Served


SCENARIO = '[[responses]]\npattern = { type = "any" }\nresponse = "fine"\n'
TOOL = pb.Tool(name="measure", description="Reads a gauge.", input_schema=b'{"type": "object"}')
COUNTING = {
    ProviderName.ANTHROPIC,
    ProviderName.GEMINI,
    ProviderName.OPENAI_RESPONSES,
    ProviderName.SCRIPTED,
}


@asynccontextmanager
async def gateway(tmp_path: Path, spoken: Spoken) -> AsyncIterator[tuple[Served, GatewayServiceAsyncStub]]:
    with served(SCENARIO) as simulator:
        async with channel_to(tmp_path, spoken, simulator.url) as channel:
            yield simulator, GatewayServiceStub(channel)


def message(text: str) -> pb.ChatMessage:
    return pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])


def prompt(text: str = "How much is there?") -> pb.Prompt:
    return pb.Prompt(system="You read gauges.", messages=[message(text)], tools=[TOOL])


@pytest.mark.parametrize("spoken", [one for one in PROVIDERS if one.name in COUNTING], ids=str)
async def test_what_a_provider_counts_is_what_it_bills(tmp_path: Path, spoken: Spoken) -> None:
    async with gateway(tmp_path, spoken) as (simulator, client):
        counted = await client.CountTokens(pb.CountTokensRequest(prompt=prompt()))
        assert len(simulator.simulator.captured) == 0
        request = pb.GenerateRequest(request_id=str(uuid.uuid4()), prompt=prompt())
        *_, last = [event async for event in client.Generate(request)]
    assert counted.exact
    assert counted.input_tokens == last.completed.usage.input_tokens
    assert counted.cache_plan == last.completed.cache_plan


@pytest.mark.parametrize("spoken", [one for one in PROVIDERS if one.name not in COUNTING], ids=str)
async def test_else_it_is_estimated_and_never_too_few(tmp_path: Path, spoken: Spoken) -> None:
    async with gateway(tmp_path, spoken) as (simulator, client):
        counted = await client.CountTokens(pb.CountTokensRequest(prompt=prompt("much " * 100)))
        assert len(simulator.simulator.captured) == 0
        request = pb.GenerateRequest(request_id=str(uuid.uuid4()), prompt=prompt("much " * 100))
        *_, last = [event async for event in client.Generate(request)]
    assert not counted.exact
    used = last.completed.usage.input_tokens
    assert used <= counted.input_tokens <= 2 * used


async def test_a_conversation_counts_with_all_that_it_sends(tmp_path: Path) -> None:
    spoken = PROVIDERS[0]
    async with gateway(tmp_path, spoken) as (_, client):
        made = await client.CreateConversation(
            pb.CreateConversationRequest(
                request_id=str(uuid.uuid4()),
                system="You read gauges.",
                tools=[TOOL],
            ),
        )
        named: dict[str, Any] = {"conversation_id": made.conversation.conversation_id}
        for _ in range(2):
            question = pb.Prompt(messages=[message("And now?")])
            counted = await client.CountTokens(pb.CountTokensRequest(prompt=question, **named))
            request = pb.GenerateRequest(request_id=str(uuid.uuid4()), prompt=question, **named)
            *_, last = [event async for event in client.Generate(request)]
            assert counted.input_tokens == last.completed.usage.input_tokens
        with pytest.raises(InvalidArgumentError, match="system"):
            await client.CountTokens(pb.CountTokensRequest(prompt=prompt(), **named))


async def test_a_provider_that_cannot_be_asked_leaves_an_estimate(tmp_path: Path) -> None:
    async with channel_to(tmp_path, PROVIDERS[0], "http://127.0.0.1:9") as channel:
        counted = await GatewayServiceStub(channel).CountTokens(pb.CountTokensRequest(prompt=prompt()))
    assert counted.input_tokens > 0
    assert not counted.exact


async def test_the_plan_says_what_the_cache_would_do_and_asking_for_it_changes_nothing(
    tmp_path: Path,
) -> None:
    long = pb.Prompt(system="You read gauges. " * 2_000, messages=[message("How much?")])
    async with gateway(tmp_path, PROVIDERS[0]) as (_, client):
        plans = [(await client.CountTokens(pb.CountTokensRequest(prompt=long))).cache_plan for _ in range(2)]
        request = pb.GenerateRequest(request_id=str(uuid.uuid4()), prompt=long)
        *_, last = [event async for event in client.Generate(request)]
        after = (await client.CountTokens(pb.CountTokensRequest(prompt=long))).cache_plan
    assert plans[0] == plans[1] == last.completed.cache_plan
    assert plans[0].predicted_write_tokens > 4_000
    assert plans[0].predicted_read_tokens == 0
    assert after.predicted_read_tokens > 4_000


async def test_what_cannot_be_sent_is_not_counted(tmp_path: Path) -> None:
    async with gateway(tmp_path, PROVIDERS[0]) as (_, client):
        with pytest.raises(InvalidArgumentError, match="messages"):
            await client.CountTokens(pb.CountTokensRequest(prompt=pb.Prompt(system="s")))
        with pytest.raises(NotFoundError):
            await client.CountTokens(
                pb.CountTokensRequest(conversation_id="none", prompt=pb.Prompt(messages=[message("a")])),
            )
