"""Keys go to their provider, in a header, and nowhere else: looked for in everything that is emitted."""

from __future__ import annotations

import asyncio
import json
import uuid
from itertools import product
from typing import TYPE_CHECKING

import grpc.aio
import pytest

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from support.gateway.fake_server import upstream
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.gateway.fake_server import Reply, Request


CANARY = "canary-5f1d0c77"
ACCOUNTS = ("OPENAI", "ANTHROPIC", "GEMINI", "DEEPSEEK", "AZURE", "OLLAMA")
PROVIDERS = (
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "deepseek",
    "azure",
    "ollama",
    "generic",
)
HARM = (
    "refused",
    "key",
    "unknown",
    "limited",
    "failed",
    "moved",
    "page",
    "garbage",
    "error in stream",
    "cut",
)


async def hostile(request: Request, reply: Reply) -> None:
    """Answer with everything that the request contained, as a hostile server."""
    told = json.dumps(dict(request.headers))
    error = {"error": {"message": told, "type": told, "code": told, "status": told}}
    harm = next((harm for harm in HARM if f"harm: {harm}." in request.raw.decode(errors="replace")), "failed")
    headers = {"x_echo": told, "retry_after": "9999"}
    match harm:
        case "moved":
            await reply.refuse(307, error, location=f"http://127.0.0.1:9/?{CANARY}", **headers)
        case "page":
            await reply.refuse(502, f"<html>{told}</html>".encode(), **headers)
        case "garbage":
            await reply.stream(told.encode() + b"\n\n", b"data: " + told.encode() + b"\n\n")
        case "error in stream":
            await reply.stream(b"data: " + json.dumps(error).encode() + b"\n\n")
        case "cut":
            await reply.start()
            reply.cut()
        case _:
            status = {"refused": 400, "key": 401, "unknown": 404, "limited": 429, "failed": 500}[harm]
            await reply.refuse(status, error, **headers)


async def provoked(channel: grpc.aio.Channel, provider: str, harm: str) -> str:
    """Return all text that a caller receives when this failure happens with this provider."""
    message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=f"harm: {harm}.")])
    request = pb.GenerateRequest(
        request_id=str(uuid.uuid4()),
        prompt=pb.Prompt(messages=[message]),
        options=pb.GenerationOptions(model=f"{provider}/m"),
    )
    call = GatewayServiceStub(channel).Generate(request, timeout=30)
    try:
        return "".join([str(response) async for response in call])
    except grpc.aio.AioRpcError as error:
        return f"{error!r} {error.debug_error_string()} {error.trailing_metadata()}"


def written(home: Path) -> Iterator[bytes]:
    for path in home.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


@pytest.mark.slow(reason="starts every command with a key")
async def test_no_key_is_in_a_log_an_error_a_file_or_an_address(tmp_path: Path) -> None:
    async with upstream(hostile) as server:
        settings = {"PERIPETY_LOG_LEVEL": "debug", "PERIPETY_BREAKER_FAILURES": "1000000"}
        for account in ACCOUNTS:
            settings[f"{account}_API_KEY"] = f"{CANARY}-{account.lower()}"
            settings[f"{account}_API_BASE"] = server.base_url
        with ServerProcess(tmp_path / "home", "gateway", settings) as process:
            async with grpc.aio.insecure_channel(process.address) as channel:
                told = await asyncio.gather(
                    *(provoked(channel, provider, harm) for provider, harm in product(PROVIDERS, HARM)),
                )
            assert process.stop() == 0
    asked = server.requests
    carried = {key for request in asked for key in request.headers.values() if CANARY in key}
    assert all(told)
    assert len(carried) >= len(ACCOUNTS) - 1, "the servers were never given the keys"
    assert not [line for line in told if CANARY in line]
    assert not [request.line for request in asked if CANARY in request.line]
    assert not [request for request in asked if CANARY.encode() in request.raw]
    assert "generic" in process.log
    assert not [data for data in written(tmp_path) if CANARY.encode() in data]
