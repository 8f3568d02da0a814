"""Parsing of requests to stored conversations, and rejected requests."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.duration_pb2 import Duration

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.errors import AlreadyExistsError, InvalidArgumentError
from peripety.gateway.setup import register_service
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceAsyncStub


@asynccontextmanager
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayServiceAsyncStub]:
    async with (
        serve_registered(config_for(tmp_path), [register_service]) as app,
        open_channel(app.address) as channel,
    ):
        yield GatewayServiceStub(channel)


def new_id() -> str:
    return str(uuid.uuid4())


def said(*texts: str, role: pb.ChatRole.ValueType = pb.CHAT_ROLE_USER) -> list[pb.ChatMessage]:
    return [pb.ChatMessage(role=role, parts=[pb.ContentPart(text=text)]) for text in texts]


async def created(stub: GatewayServiceAsyncStub) -> pb.Conversation:
    return (await stub.CreateConversation(pb.CreateConversationRequest(request_id=new_id()))).conversation


async def test_an_id_that_was_used_to_fork_deletes_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path) as stub:
        one = (await created(stub)).conversation_id
        same: dict[str, Any] = {"request_id": new_id(), "conversation_id": one}
        await stub.ForkConversation(pb.ForkConversationRequest(**same))
        for other in (
            stub.DeleteConversation(pb.DeleteConversationRequest(**same)),
            stub.RewindConversation(pb.RewindConversationRequest(**same)),
        ):
            with pytest.raises(AlreadyExistsError, match=r"request_id"):
                await other
        assert (await stub.GetConversation(pb.GetConversationRequest(conversation_id=one))).conversation


async def test_an_answer_is_never_said_for_the_model(tmp_path: Path) -> None:
    said_for_it = [*said("a"), *said("b", role=pb.CHAT_ROLE_ASSISTANT), *said("c")]
    async with gateway(tmp_path) as stub:
        one = (await created(stub)).conversation_id
        fields: dict[str, Any] = {"conversation_id": one, "prompt": pb.Prompt(messages=said_for_it)}
        with pytest.raises(InvalidArgumentError, match=r"prompt\.messages\[1\]\.role"):
            _ = [event async for event in stub.Generate(pb.GenerateRequest(request_id=new_id(), **fields))]
        with pytest.raises(InvalidArgumentError, match=r"prompt\.messages\[1\]\.role"):
            await stub.CountTokens(pb.CountTokensRequest(**fields))


async def test_turns_are_counted_in_conversations_only(tmp_path: Path) -> None:
    request = pb.GenerateRequest(
        request_id=new_id(),
        prompt=pb.Prompt(messages=said("a")),
        expected_turn_count=0,
    )
    async with gateway(tmp_path) as stub:
        with pytest.raises(InvalidArgumentError, match=r"expected_turn_count"):
            _ = [event async for event in stub.Generate(request)]


@pytest.mark.parametrize("seconds", [2**63 - 1, 10**14])
async def test_a_budget_may_allow_any_time(tmp_path: Path, seconds: int) -> None:
    options = pb.GenerationOptions(budget=common.Budget(max_time=Duration(seconds=seconds)))
    request = pb.GenerateRequest(request_id=new_id(), prompt=pb.Prompt(messages=said("a")), options=options)
    async with gateway(tmp_path) as stub:
        events = [event async for event in stub.Generate(request)]
    assert events[-1].HasField("completed")


async def test_a_request_id_in_upper_case_is_the_same_request(tmp_path: Path) -> None:
    request_id = "a" + new_id()[1:]
    async with gateway(tmp_path) as stub:
        first, second = [
            (await stub.CreateConversation(pb.CreateConversationRequest(request_id=spelling))).conversation
            for spelling in (request_id.upper(), request_id)
        ]
        assert first == second
        assert len((await stub.ListConversations(pb.ListConversationsRequest())).conversations) == 1
        with pytest.raises(AlreadyExistsError, match="request_id"):
            await stub.CreateConversation(
                pb.CreateConversationRequest(request_id=request_id.upper(), system="s"),
            )


async def test_a_violation_names_the_field_without_a_leading_dot(tmp_path: Path) -> None:
    async with gateway(tmp_path) as stub:
        with pytest.raises(InvalidArgumentError, match=r"^request_id ") as caught:
            await stub.CreateConversation(pb.CreateConversationRequest(request_id="x"))
        assert [violation.field for violation in caught.value.violations] == ["request_id"]
