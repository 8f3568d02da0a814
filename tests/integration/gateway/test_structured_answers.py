"""Structured answers as a scripted model spoils them: over HTTP to the gateway, and over gRPC from it."""

from __future__ import annotations

import json
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import FailedPreconditionError, Finding
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.setup import register_service
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import SchemaMethod
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.llmsim.simulator import served
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import grpc.aio


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string", "maxLength": 3}},
    "required": ["a"],
    "additionalProperties": False,
}
GOOD = '{"a": 1}'


def scenario(first: dict[str, Any], second: dict[str, Any]) -> str:
    """Return a script with one answer to the question, and one to the retry after its rejection."""
    rules = [
        ({"type": "contains", "text": "That answer was refused"}, second),
        ({"type": "any"}, first),
    ]
    return "".join(
        f"[[responses]]\npattern = {_inline(pattern)}\nresponse = {_inline(response)}\n"
        for pattern, response in rules
    )


def _inline(table: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + " }"


@asynccontextmanager
async def gateway(
    tmp_path: Path,
    first: dict[str, Any],
    second: dict[str, Any],
) -> AsyncIterator[grpc.aio.Channel]:
    with served(scenario(first, second)) as simulator:
        config = config_for(
            tmp_path,
            model_provider=ProviderName.OPENAI,
            openai_api_base=f"{simulator.url}/v1",
            openai_api_key=SecretStr("sk-test"),
            model_name="gpt-5",
        )
        async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
            yield channel


def request() -> GenerateRequest:
    return GenerateRequest(None, (ChatMessage.user("give a"),), ResponseSchema("answer", SCHEMA))


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"Of course!\n```json\n{GOOD}\n```\nAnything else?",
        '{"a": 2, "a": 3} was wrong, {"a": 1} is right',
        "{'a': 1, /* one */ }",
        '{"a": 1, "b": null}',
    ],
)
async def test_an_answer_that_can_be_read_takes_one_call(tmp_path: Path, text: str) -> None:
    async with gateway(tmp_path, {"text": text}, {"text": "unused"}) as channel:
        completion = await RemoteModelGateway(channel).generate(request())
    assert (completion.value, completion.calls, completion.repaired) == ({"a": 1}, 1, False)
    assert completion.text == text


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("I would rather not.", ["NOT_JSON"]),
        ('{"a": NaN}', ["NOT_FINITE"]),
        ('{"a": 1, "a": 2}', ["DUPLICATE_KEY"]),
        ('{"a": "one", "c": 1}', ["WRONG_TYPE", "UNKNOWN_KEY"]),
        ('{"a": 0}', ["OUT_OF_RANGE"]),
        ('{"a": 1, "b": "long"}', ["TOO_LONG"]),
        ('[{"a": 1}]', ["WRONG_TYPE"]),
        ('{"a": 1, "b": "', ["CUT_OFF"]),
    ],
)
async def test_an_answer_that_cannot_is_asked_for_once_more(
    tmp_path: Path,
    text: str,
    codes: list[str],
) -> None:
    async with gateway(tmp_path, {"text": text}, {"text": GOOD}) as channel:
        completion = await RemoteModelGateway(channel).generate(request())
    assert (completion.value, completion.calls, completion.repaired) == ({"a": 1}, 2, True)
    assert sorted(finding.code for finding in completion.findings) == sorted(codes)


async def test_an_answer_that_its_limit_cut_is_never_completed(tmp_path: Path) -> None:
    cut = {"text": '{"a": 1 "b": ""}', "stop": "length"}
    async with gateway(tmp_path, cut, cut) as channel:
        with pytest.raises(FailedPreconditionError) as caught:
            await RemoteModelGateway(channel).generate(request())
    assert caught.value.code == "ANSWER_INVALID"
    assert "TRUNCATED" in caught.value.violations[0].reason


async def test_an_advisory_answer_comes_with_its_findings_and_its_conversation_goes_on(
    tmp_path: Path,
) -> None:
    spoilt, schema = '{"a": 0, "c": 1}', ResponseSchema("answer", SCHEMA, advisory=True)
    async with gateway(tmp_path, {"text": spoilt}, {"text": GOOD}) as channel:
        conversation = Conversation(RemoteModelGateway(channel), "be brief")
        first = await conversation.send("give a", schema=schema)
        second = await conversation.send("That answer was refused", schema=schema)
    assert (first.value, first.repaired, first.calls) == ({"a": 0, "c": 1}, False, 1)
    assert [finding.code for finding in first.findings] == ["OUT_OF_RANGE", "UNKNOWN_KEY"]
    assert (second.value, second.findings) == ({"a": 1}, ())
    assert [message.text for message in conversation.messages] == [
        "give a",
        spoilt,
        "That answer was refused",
        GOOD,
    ]


async def test_a_check_of_the_caller_sees_no_advisory_answer_that_breaks_its_schema(tmp_path: Path) -> None:
    async def accept(value: Any) -> list[Finding]:
        return [Finding("SMALL", "/a", f"{value['a']} is small")]

    schema = ResponseSchema("answer", SCHEMA, accept, advisory=True)
    async with gateway(tmp_path, {"text": "[]"}, {"text": GOOD}) as channel:
        conversation = Conversation(RemoteModelGateway(channel), None)
        first = await conversation.send("give a", schema=schema)
        second = await conversation.send("That answer was refused", schema=schema)
    assert [finding.code for finding in first.findings] == ["WRONG_TYPE"]
    assert [finding.code for finding in second.findings] == ["SMALL"]
    assert (second.repaired, second.calls) == (False, 1)


async def test_what_the_provider_could_not_be_told_is_reported(tmp_path: Path) -> None:
    message = pb.GenerateObjectRequest(
        request_id=str(uuid.uuid4()),
        prompt=pb.Prompt(
            messages=[pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text="give a")])],
        ),
        schema=pb.ResponseSchema(name="answer", document=json.dumps(SCHEMA).encode()),
    )
    async with gateway(tmp_path, {"text": GOOD}, {"text": "unused"}) as channel:
        *_, last = [event async for event in GatewayServiceStub(channel).GenerateObject(message)]
        completion = await RemoteModelGateway(channel).generate(request())
    report = last.completed.schema_report
    assert report.method == pb.SCHEMA_METHOD_NATIVE
    assert [finding.path for finding in report.dropped] == ["/properties/b/maxLength"]
    assert completion.schema_report is not None
    assert completion.schema_report.method is SchemaMethod.NATIVE
    assert [finding.code for finding in completion.schema_report.dropped] == ["NOT_TOLD"]
