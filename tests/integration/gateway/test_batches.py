"""Many prompts in one call, over gRPC to the gateway and over HTTP to a provider."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import InvalidArgumentError, UnavailableError
from peripety.gateway.setup import register_service
from peripety.llmsim.script.files import ScriptBuilder
from peripety.rpc.channel import open_channel
from peripety.rpc.status import item_error_from_proto
from peripety.server.app import serve_registered
from support.gateway.fake_server import DONE, Reply, Request, delta, finish, upstream, usage
from support.gateway.providers import PROVIDERS, channel_to
from support.llmsim.simulator import served as served_script
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from support.gateway.fake_server import FakeServer


SCHEMA = pb.ResponseSchema(
    name="answer",
    document=b'{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}',
)


@asynccontextmanager
async def served(
    tmp_path: Path,
    answer: Callable[[Request, Reply], Awaitable[None]],
) -> AsyncIterator[tuple[FakeServer, grpc.aio.Channel]]:
    async with asyncio.timeout(20), upstream(answer) as server:
        config = config_for(
            tmp_path,
            model_provider=ProviderName.GENERIC,
            openai_api_base=server.base_url,
            model_name="m",
        )
        async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
            yield server, channel


def asked(request: Request) -> str:
    text: str = request.body["messages"][-1]["content"]
    return text


async def echo(request: Request, reply: Reply) -> None:
    """Answer with the question, by the schema if there is one; fail on request."""
    text = asked(request)
    if text == "fail":
        await reply.refuse(400, {"error": {"message": "no"}})
        return
    answer = json.dumps({"a": text}) if "response_format" in request.body else text
    await reply.stream(delta(answer), finish(), usage(7, 3), DONE)


def item(item_id: str, text: str = "", **fields: Any) -> pb.GenerateItem:
    message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text or item_id)])
    return pb.GenerateItem(item_id=item_id, prompt=pb.Prompt(messages=[message]), **fields)


def batch(*items: pb.GenerateItem, request_id: str = "") -> pb.GenerateManyRequest:
    return pb.GenerateManyRequest(request_id=request_id or str(uuid.uuid4()), items=items)


async def results(
    channel: grpc.aio.Channel,
    *requests: pb.GenerateManyRequest,
) -> dict[str, pb.GenerateResult]:
    responses = [response async for response in GatewayServiceStub(channel).GenerateMany(iter(requests))]
    assert [response.sequence for response in responses] == list(range(1, len(responses) + 1))
    return {result.item_id: result for response in responses for result in response.results}


async def test_each_item_has_its_own_options_and_its_own_result(tmp_path: Path) -> None:
    async with served(tmp_path, echo) as (server, channel):
        first = batch(
            item("a"),
            item("b", schema=SCHEMA, options=pb.GenerationOptions(max_output_tokens=5)),
            item("c", "fail"),
        )
        second = pb.GenerateManyRequest(
            items=[pb.GenerateItem(item_id="d"), item("e", options={"temperature": 9})],
        )
        told = await results(channel, first, second)
    assert told["b"].completion.value == b'{"a": "b"}'
    assert [request.body["max_tokens"] for request in server.requests if asked(request) == "b"] == [5]
    assert told["a"].completion.text == "a"
    errors = {name: item_error_from_proto(told[name].error) for name in "cde"}
    assert errors["c"].code == "PROVIDER_REFUSED_REQUEST"
    assert isinstance(errors["d"], InvalidArgumentError)
    assert "temperature" in str(errors["e"])
    assert len(server.requests) == 3


async def test_a_name_that_is_used_twice_is_the_error_of_the_second(tmp_path: Path) -> None:
    async with served(tmp_path, echo) as (server, channel):
        sent = batch(item("a"), item("a", "again"))
        told = [
            result
            async for response in GatewayServiceStub(channel).GenerateMany(iter([sent]))
            for result in response.results
        ]
    assert sorted(result.error.reason or result.completion.text for result in told) == ["DUPLICATE_ITEM", "a"]
    assert len(server.requests) == 1


async def test_results_come_while_items_are_still_being_sent(tmp_path: Path) -> None:
    async with served(tmp_path, echo) as (_, channel):
        call: Any = GatewayServiceStub(channel).GenerateMany()
        request_id = str(uuid.uuid4())
        for name in "abc":
            await call.write(batch(item(name), request_id=request_id))
            response = await call.read()
            assert [result.item_id for result in response.results] == [name]
            assert response.results[0].completion.text == name
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF


async def test_a_batch_of_many_items_is_answered_once_each_and_not_again(tmp_path: Path) -> None:
    sent = batch(*[item(f"item {number}") for number in range(300)])
    async with served(tmp_path, echo) as (server, channel):
        told = await results(channel, sent)
        assert {name: result.completion.text for name, result in told.items()} == {
            f"item {number}": f"item {number}" for number in range(300)
        }
        assert len(server.requests) == 300
        again = await results(channel, sent)
        assert len(server.requests) == 300
    assert all(result.completion.from_response_cache for result in again.values())
    assert len(again) == 300


async def test_what_was_answered_before_a_connection_was_lost_is_not_asked_again(tmp_path: Path) -> None:
    async def answer(request: Request, reply: Reply) -> None:
        await (
            reply.left() if asked(request) == "slow" and len(server.requests) < 3 else echo(request, reply)
        )

    sent = batch(item("quick"), item("slow"))
    async with served(tmp_path, answer) as (server, channel):
        call: Any = GatewayServiceStub(channel).GenerateMany(iter([sent]))
        response = await call.read()
        assert [result.item_id for result in response.results] == ["quick"]
        call.cancel()
        told = await results(channel, sent)
    assert told["quick"].completion.from_response_cache
    assert told["slow"].completion.text == "slow"
    # Both requests are sent at once; their order of arrival is undefined.
    assert sorted(asked(request) for request in server.requests) == ["quick", "slow", "slow"]


async def test_a_client_that_goes_away_ends_every_call_to_the_provider(tmp_path: Path) -> None:
    left = asyncio.Semaphore(0)

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta("a"))
        await reply.left()
        left.release()

    async with served(tmp_path, answer) as (server, channel):
        call: Any = GatewayServiceStub(channel).GenerateMany(iter([batch(*map(item, "abcde"))]))
        reading = asyncio.ensure_future(call.read())
        while len(server.requests) < 5:  # noqa: ASYNC110 - they are another program's
            await asyncio.sleep(0.01)
        call.cancel()
        for _ in range(5):
            await left.acquire()
        with pytest.raises(asyncio.CancelledError):
            await reading


@pytest.mark.slow(reason="fills every buffer of a connection")
async def test_a_client_that_reads_no_results_is_read_no_further(tmp_path: Path) -> None:
    text = "x" * 60_000

    async def answer(_request: Request, reply: Reply) -> None:
        await reply.stream(delta(text), finish(), usage(7, 3), DONE)

    async with served(tmp_path, answer) as (server, channel):
        call: Any = GatewayServiceStub(channel).GenerateMany(
            iter([batch(*[item(str(n)) for n in range(400)])])
        )
        count = len((await call.read()).results)
        asked_then = -1
        while asked_then < len(server.requests):
            asked_then = len(server.requests)
            await asyncio.sleep(0.05)
        # The buffers of the transport, and 64 items on top of them.
        assert asked_then < 300
        while (response := await call.read()) is not grpc.aio.EOF:
            count += len(response.results)
        assert len(server.requests) == 400
        assert count == 400


@pytest.mark.parametrize(("words", "together"), [(4_000, False), (10, True)])
async def test_one_prompt_fills_the_cache_for_those_that_begin_alike_if_there_is_enough_to_cache(
    tmp_path: Path,
    words: int,
    together: bool,
) -> None:
    scenario = ScriptBuilder(pace={"first_token_ms": 60}).default_response("fine").build()
    items = [item(name) for name in "abcd"]
    for one in items:
        one.prompt.system = "word " * words
    with served_script(scenario) as server:
        async with channel_to(tmp_path, PROVIDERS[0], server.url) as channel:
            told = await results(channel, batch(*items))
    usages = [result.completion.usage for result in told.values()]
    reading = [usage for usage in usages if usage.cache_read_tokens > words / 2]
    writing = [usage for usage in usages if usage.cache_write_tokens > words / 2]
    assert (len(writing), len(reading)) == ((0, 0) if together else (1, 3))


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (batch(item("a"), request_id="x"), "request_id"),
        (batch(*[item(str(number)) for number in range(1_001)]), "items"),
    ],
)
async def test_a_bad_message_ends_the_call(tmp_path: Path, sent: pb.GenerateManyRequest, field: str) -> None:
    async with served(tmp_path, echo) as (_, channel):
        with pytest.raises(InvalidArgumentError, match=field):
            await results(channel, sent)


async def test_a_provider_that_is_down_is_an_error_of_each_item(tmp_path: Path) -> None:
    async def answer(_request: Request, reply: Reply) -> None:
        await reply.refuse(503, {})

    async with served(tmp_path, answer) as (_, channel):
        told = await results(channel, batch(item("a"), item("b")))
    for name in "ab":
        assert isinstance(item_error_from_proto(told[name].error), UnavailableError)
