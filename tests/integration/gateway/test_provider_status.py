"""Circuit breakers, rate limits and the capture log of the scripted LLM over gRPC."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderLimits, ProviderName
from peripety.errors import FailedPreconditionError, InvalidArgumentError, PeripetyError
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceAsyncStub

FAILING = {"pattern": {"type": "contains", "text": "fail"}, "failure": {"type": "auth_error"}}
BROKEN = {"pattern": {"type": "contains", "text": "break"}, "failure": {"type": "server_error"}}
SCRIPT = {"responses": [FAILING, BROKEN], "default_response": "as in the script"}


@asynccontextmanager
async def scripted_gateway(tmp_path: Path, **settings: Any) -> AsyncIterator[GatewayServiceAsyncStub]:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(SCRIPT), encoding="utf-8")
    config = config_for(tmp_path, model_provider=ProviderName.SCRIPTED, script=file, **settings)
    async with serve(config, {"gateway"}) as app, open_channel(app.address) as channel:
        yield GatewayServiceStub(channel)


async def generate(gateway: GatewayServiceAsyncStub, text: str) -> None:
    message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])
    request = pb.GenerateRequest(request_id=str(uuid4()), prompt=pb.Prompt(messages=[message]))
    async for _ in gateway.Generate(request):
        pass


async def test_limits_count_what_calls_have_used(tmp_path: Path) -> None:
    limits = {"scripted": ProviderLimits(requests_per_minute=50)}
    async with scripted_gateway(tmp_path, limits=limits) as gateway:
        assert not (await gateway.GetProviderStatus(pb.GetProviderStatusRequest())).providers
        await generate(gateway, "one")
        await generate(gateway, "two")
        (status,) = (await gateway.GetProviderStatus(pb.GetProviderStatusRequest())).providers
    assert (status.provider, status.circuit) == ("scripted", pb.CIRCUIT_STATE_CLOSED)
    assert not status.HasField("retry_delay")
    counted = {limit.kind: limit for limit in status.limits}
    assert len(counted) == 5
    requests = counted[pb.RATE_LIMIT_KIND_REQUESTS]
    assert (requests.limit, requests.used) == (50, 2)
    assert not counted[pb.RATE_LIMIT_KIND_INPUT_TOKENS].HasField("limit")
    assert counted[pb.RATE_LIMIT_KIND_INPUT_TOKENS].used > 0
    assert counted[pb.RATE_LIMIT_KIND_CONCURRENCY].used == 0


async def test_a_circuit_breaker_that_opens_is_reported_with_its_delay(tmp_path: Path) -> None:
    async with scripted_gateway(tmp_path, breaker_failures=1, breaker_open_seconds=30) as gateway:
        with pytest.raises(PeripetyError):
            await generate(gateway, "break")
        (status,) = (await gateway.GetProviderStatus(pb.GetProviderStatusRequest())).providers
    assert status.circuit == pb.CIRCUIT_STATE_OPEN
    assert 0 < status.retry_delay.ToSeconds() <= 30


async def test_captured_calls_are_followed_as_they_arrive(tmp_path: Path) -> None:
    async with scripted_gateway(tmp_path) as gateway:
        await generate(gateway, "before")
        arrived: asyncio.Queue[pb.WatchScriptedCallsResponse] = asyncio.Queue()

        async def watch(after: int) -> None:
            async for one in gateway.WatchScriptedCalls(pb.WatchScriptedCallsRequest(after_sequence=after)):
                arrived.put_nowait(one)

        watching = asyncio.ensure_future(watch(0))
        first = await asyncio.wait_for(arrived.get(), 20)
        assert (first.sequence, first.call.prompt, first.call.answer.text) == (
            1,
            "before",
            "as in the script",
        )
        assert first.call.rule == "default"
        assert first.call.answer.input_tokens > 0
        with pytest.raises(PeripetyError):
            await generate(gateway, "fail")
        second = await asyncio.wait_for(arrived.get(), 20)
        assert (second.sequence, second.call.failure.kind) == (2, "auth_error")
        watching.cancel()
        again = gateway.WatchScriptedCalls(pb.WatchScriptedCallsRequest(max_recorded=1))
        assert (await anext(aiter(again))).sequence == 2
        again.cancel()
        with pytest.raises(InvalidArgumentError):
            await anext(aiter(gateway.WatchScriptedCalls(pb.WatchScriptedCallsRequest(after_sequence=-1))))


async def test_without_a_scripted_llm_the_log_names_the_setting(tmp_path: Path) -> None:
    async with (
        serve(config_for(tmp_path), {"gateway"}) as app,
        open_channel(app.address) as channel,
    ):
        stream = GatewayServiceStub(channel).WatchScriptedCalls(pb.WatchScriptedCallsRequest())
        with pytest.raises(FailedPreconditionError, match="PERIPETY_SCRIPT") as raised:
            await anext(aiter(stream))
    assert raised.value.code == "PROVIDER_NOT_CONFIGURED"
