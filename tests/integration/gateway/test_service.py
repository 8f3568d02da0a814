"""The gateway service over gRPC, called directly and through the client that implements its protocol."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import (
    DeadlineError,
    FailedPreconditionError,
    Finding,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.setup import register_service
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import Budget, GenerateRequest, ResponseSchema
from peripety.gateway.types.response import Completed, Repairing, StopReason, TextDelta, Usage
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.gateway.fake_server import DONE, Reply, Request, answering, delta, finish, upstream, usage
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    import grpc.aio

    from support.gateway.fake_server import FakeServer


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
PROMPT = pb.Prompt(
    system="s",
    messages=[pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text="u")])],
)
QUESTION = GenerateRequest("s", (ChatMessage.user("u"),))


@asynccontextmanager
async def served(
    tmp_path: Path,
    answer: Callable[[Request, Reply], Awaitable[None]],
) -> AsyncIterator[tuple[FakeServer, grpc.aio.Channel]]:
    """The service in front of an upstream that answers like this."""
    async with upstream(answer) as server:
        config = config_for(
            tmp_path,
            model_provider=ProviderName.GENERIC,
            openai_api_base=server.base_url,
            model_name="m",
        )
        async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
            yield server, channel


def generate(**fields: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(**{"request_id": str(uuid.uuid4()), "prompt": PROMPT, **fields})


def schema(document: Any = None) -> pb.ResponseSchema:
    return pb.ResponseSchema(name="answer", document=json.dumps(document or SCHEMA).encode())


async def test_an_answer_streams_and_ends_with_the_whole_of_it(tmp_path: Path) -> None:
    async with served(tmp_path, answering("hello")) as (server, channel):
        options = pb.GenerationOptions(max_output_tokens=9, temperature=0.0, seed=4)
        events = [event async for event in GatewayServiceStub(channel).Generate(generate(options=options))]
    assert [event.sequence for event in events] == [1, 2]
    assert events[0].text_delta == "hello"
    completed = events[1].completed
    assert (completed.text, completed.model, completed.provider, completed.calls) == (
        "hello",
        "m-1",
        "generic",
        1,
    )
    assert completed.usage == common.TokenUsage(input_tokens=7, output_tokens=3, cache_read_tokens=2)
    assert completed.stop_reason == pb.STOP_REASON_END
    assert completed.message.parts[0].text == "hello"
    body = server.requests[0].body
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (9, 0.0, 4)


async def test_each_token_reaches_the_client_before_the_next_one_is_made(tmp_path: Path) -> None:
    seen = asyncio.Semaphore(0)

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        for token in "abcde":
            await reply.send(delta(token))
            await seen.acquire()
        await reply.send(finish() + usage(1, 5) + DONE)
        await reply.end()

    received = []
    async with asyncio.timeout(30), served(tmp_path, answer) as (_, channel):
        async for event in GatewayServiceStub(channel).Generate(generate()):
            if event.WhichOneof("event") == "text_delta":
                received.append(event.text_delta)
                seen.release()
    assert received == list("abcde")


async def test_a_client_that_goes_away_ends_the_work_of_the_provider(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta("a"))
        await reply.left()
        gone.set()

    async with asyncio.timeout(30), served(tmp_path, answer) as (_, channel):
        call = GatewayServiceStub(channel).Generate(generate())
        async for _ in call:
            break
        call.cancel()
        await gone.wait()


async def test_the_deadline_of_the_call_ends_the_work_of_the_provider(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.left()
        gone.set()

    async with asyncio.timeout(30), served(tmp_path, answer) as (_, channel):
        with pytest.raises(DeadlineError):
            async for _ in GatewayServiceStub(channel).Generate(generate(), timeout=2.0):
                pass
        await gone.wait()


async def test_a_structured_answer_is_repaired_once(tmp_path: Path) -> None:
    async with served(tmp_path, answering("{}", '{"a": 1}')) as (server, channel):
        events = [event async for event in GatewayServiceStub(channel).Generate(generate(schema=schema()))]
    assert [event.WhichOneof("event") for event in events] == [
        "text_delta",
        "repair_started",
        "text_delta",
        "completed",
    ]
    completed = events[-1].completed
    assert (json.loads(completed.value), completed.repaired, completed.calls) == ({"a": 1}, True, 2)
    assert completed.findings[0].code == "MISSING_KEY"
    assert completed.findings[0].severity == common.SEVERITY_ERROR
    first, second = (request.body["messages"] for request in server.requests)
    assert second[: len(first)] == first


async def test_an_object_grows_and_ends_valid(tmp_path: Path) -> None:
    document: dict[str, Any] = {"a": 1, "b": [f"item {number}" for number in range(50)]}
    text = json.dumps(document)

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        for start in range(0, len(text), 20):
            await reply.send(delta(text[start : start + 20]))
            await asyncio.sleep(0)
        await reply.send(finish() + DONE)
        await reply.end()

    async with served(tmp_path, answer) as (_, channel):
        request = pb.GenerateObjectRequest(request_id=str(uuid.uuid4()), prompt=PROMPT, schema=schema())
        events = [event async for event in GatewayServiceStub(channel).GenerateObject(request)]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    partials = [json.loads(event.partial) for event in events[:-1]]
    assert partials
    assert all(partial["b"] == document["b"][: len(partial["b"])] for partial in partials if "b" in partial)
    assert json.loads(events[-1].completed.value) == document


@pytest.mark.parametrize(
    ("request_", "kind", "field"),
    [
        (generate(request_id="x"), InvalidArgumentError, "request_id"),
        (generate(prompt=pb.Prompt(system="s")), InvalidArgumentError, "messages"),
        (
            generate(prompt=pb.Prompt(messages=[pb.ChatMessage()])),
            InvalidArgumentError,
            "prompt.messages[0].role",
        ),
        (
            generate(prompt=pb.Prompt(messages=[pb.ChatMessage(role=pb.CHAT_ROLE_USER)])),
            InvalidArgumentError,
            "messages[0].parts",
        ),
        (
            generate(
                prompt=pb.Prompt(
                    messages=[
                        pb.ChatMessage(
                            role=pb.CHAT_ROLE_USER,
                            parts=[pb.ContentPart(text="a"), pb.ContentPart(tool_result=pb.ToolResult())],
                        ),
                    ],
                ),
            ),
            InvalidArgumentError,
            "messages[0]",
        ),
        (
            generate(prompt=pb.Prompt(tools=[pb.Tool(name="t")])),
            InvalidArgumentError,
            "prompt.tools[0].input_schema",
        ),
        (
            generate(prompt=pb.Prompt(tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_ANY))),
            InvalidArgumentError,
            "tool_choice",
        ),
        (
            generate(conversation_id="c", prompt=pb.Prompt(system="s")),
            InvalidArgumentError,
            "prompt.system",
        ),
        (
            generate(options=pb.GenerationOptions(cache=pb.CacheConfig(expected_reuse=-1))),
            InvalidArgumentError,
            "cache.expected_reuse",
        ),
        (
            generate(options=pb.GenerationOptions(budget=common.Budget(max_calls=-1))),
            InvalidArgumentError,
            "options.budget.max_calls",
        ),
        (generate(options=pb.GenerationOptions(temperature=9)), InvalidArgumentError, "temperature"),
        (
            generate(schema=pb.ResponseSchema(name="a", document=b"[]")),
            InvalidArgumentError,
            "schema.document",
        ),
        (
            generate(schema=pb.ResponseSchema(name="a", document=b"{")),
            InvalidArgumentError,
            "schema.document",
        ),
        (generate(schema=schema({"$ref": "file:///etc/hostname"})), InvalidArgumentError, "schema.document"),
    ],
)
async def test_a_bad_request_is_refused_by_the_name_of_its_field(
    tmp_path: Path,
    request_: pb.GenerateRequest,
    kind: type[Exception],
    field: str,
) -> None:
    async with served(tmp_path, answering("a")) as (server, channel):
        with pytest.raises(kind) as caught:
            async for _ in GatewayServiceStub(channel).Generate(request_):
                pass
    assert field in str(caught.value)
    assert server.requests == []


async def test_a_gateway_of_another_process_behaves_like_one_of_this(tmp_path: Path) -> None:
    async with served(tmp_path, answering("{}", '{"a": 1}')) as (_, channel):
        gateway = RemoteModelGateway(channel)
        question = GenerateRequest(
            "s",
            QUESTION.messages,
            ResponseSchema("answer", SCHEMA),
            max_output_tokens=5,
        )
        events = [event async for event in gateway.stream(question)]
    assert [type(event) for event in events] == [TextDelta, Repairing, TextDelta, Completed]
    repairing, completed = events[1], events[-1]
    assert isinstance(repairing, Repairing)
    assert (repairing.usage, repairing.calls) == (Usage(7, 3, 2), 1)
    assert isinstance(completed, Completed)
    completion = completed.completion
    assert (completion.value, completion.repaired, completion.calls) == ({"a": 1}, True, 2)
    assert (completion.usage, completion.stop_reason) == (Usage(14, 6, 4), StopReason.END)
    assert [finding.code for finding in completion.findings] == ["MISSING_KEY"]


async def test_the_callers_check_runs_on_the_callers_side_of_the_wire(tmp_path: Path) -> None:
    async def accept(value: Any) -> list[Finding]:
        return [] if value["a"] > 1 else [Finding("TOO_SMALL", "/a", "a must be more than 1")]

    async with served(tmp_path, answering('{"a": 1}', '{"a": 2}')) as (server, channel):
        schema_ = ResponseSchema("answer", SCHEMA, accept)
        completion = await RemoteModelGateway(channel).generate(
            GenerateRequest(None, QUESTION.messages, schema_),
        )
    assert (completion.value, completion.repaired, completion.calls) == ({"a": 2}, True, 2)
    assert "TOO_SMALL" in server.requests[1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("budget", "requests"),
    [
        (Budget(max_calls=2), 2),
        (Budget(max_calls=1), 1),
        (Budget(max_tokens=10), 0),
        (Budget(max_tokens=1000), 2),
        (Budget(max_seconds=60), 2),
    ],
)
async def test_the_repair_that_the_callers_check_asks_for_has_what_is_left_of_the_budget(
    tmp_path: Path,
    budget: Budget,
    requests: int,
) -> None:
    async def accept(value: Any) -> list[Finding]:
        return [] if value["a"] > 1 else [Finding("TOO_SMALL", "/a", "a must be more than 1")]

    question = GenerateRequest(
        None,
        QUESTION.messages,
        ResponseSchema("answer", SCHEMA, accept),
        budget=budget,
    )
    async with served(tmp_path, answering('{"a": 1}', '{"a": 2}')) as (server, channel):
        answer = RemoteModelGateway(channel).generate(question)
        if requests == 2:
            assert (await answer).value == {"a": 2}
        else:
            with pytest.raises(ResourceExhaustedError, match="budget of the request"):
                await answer
    assert len(server.requests) == requests


async def test_two_repairs_are_never_made_even_across_the_wire(tmp_path: Path) -> None:
    async def accept(_value: Any) -> list[Finding]:
        return [Finding("NEVER", "", "nothing will do")]

    async with served(tmp_path, answering("{}", '{"a": 1}')) as (server, channel):
        schema_ = ResponseSchema("answer", SCHEMA, accept)
        with pytest.raises(FailedPreconditionError) as caught:
            await RemoteModelGateway(channel).generate(GenerateRequest(None, QUESTION.messages, schema_))
    assert caught.value.code == "ANSWER_INVALID"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, FailedPreconditionError, "PROVIDER_REFUSED_KEY"),
        (404, NotFoundError, "MODEL_NOT_FOUND"),
        (503, UnavailableError, "PROVIDER_FAILED"),
    ],
)
async def test_the_providers_failures_keep_their_kind_across_the_wire(
    tmp_path: Path,
    status: int,
    kind: type[Exception],
    code: str,
) -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(status, {})

    async with served(tmp_path, answer) as (_, channel):
        with pytest.raises(kind) as caught:
            await RemoteModelGateway(channel).generate(QUESTION)
    assert getattr(caught.value, "code", None) == code


async def test_a_conversation_sends_the_same_beginning_every_time(tmp_path: Path) -> None:
    async with served(tmp_path, answering("one", "two", "three")) as (server, channel):
        conversation = Conversation(RemoteModelGateway(channel), "stay the same")
        for text in ("a", "b", "c"):
            await conversation.send(text)
    prefixes = [request.body["messages"] for request in server.requests]
    assert [len(messages) for messages in prefixes] == [2, 4, 6]
    for earlier, later in itertools.pairwise(prefixes):
        assert later[: len(earlier)] == earlier


async def test_without_a_model_the_offline_provider_answers(tmp_path: Path) -> None:
    async with (
        serve_registered(config_for(tmp_path), [register_service]) as app,
        open_channel(app.address) as channel,
    ):
        completion = await RemoteModelGateway(channel).generate(QUESTION)
    assert completion.provider == "offline"
