"""Stored answers over gRPC, in front of a scripted model that records its requests."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import InvalidArgumentError
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.setup import register_service
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest, ResponseCacheMode, ResponseSchema
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.llmsim.simulator import served
from support.servers.apps import config_for
from support.servers.databases import RedisProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    import grpc.aio

    from support.llmsim.simulator import Served
    from support.servers.databases import PostgresqlProcess


OFF = pb.RESPONSE_CACHE_MODE_OFF
USE = pb.RESPONSE_CACHE_MODE_USE
REFRESH = pb.RESPONSE_CACHE_MODE_REFRESH
ANSWER = "an answer of some words, é😀 " * 40

SCENARIO = f"""
default_response = "another one"

[[responses]]
pattern = {{ type = "contains", text = "counted" }}
response = {{ text = "the first", delay_ms = 1 }}
max_matches = 1

[[responses]]
pattern = {{ type = "contains", text = "long" }}
response = {{ text = {json.dumps(ANSWER, ensure_ascii=False)} }}

[[responses]]
pattern = {{ type = "contains", text = "slow" }}
response = {{ text = "a slow answer", delay_ms = 400 }}

[[responses]]
pattern = {{ type = "contains", text = "cut short" }}
response = {{ text = "a half", stop = "length" }}

[[responses]]
pattern = {{ type = "contains", text = "object" }}
response = {{ json = {{ a = 1, b = "{"b" * 200}" }} }}

[[responses]]
pattern = {{ type = "contains", text = "refused once" }}
failure = {{ type = "out_of_credits", times = 1 }}
response = {{ text = "answered then" }}
"""


@pytest.fixture
def model() -> Iterator[Served]:
    with served(SCENARIO) as server:
        yield server


@asynccontextmanager
async def serving(tmp_path: Path, model: Served, **settings: Any) -> AsyncIterator[grpc.aio.Channel]:
    config = config_for(
        tmp_path,
        **{
            "model_provider": ProviderName.GENERIC,
            "openai_api_base": f"{model.url}/v1",
            "openai_api_key": "sk-canary-1",
            "model_name": "m",
            **settings,
        },
    )
    async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
        yield channel


def prompt(text: str) -> pb.Prompt:
    return pb.Prompt(messages=[pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])])


def contents(directory: Path) -> bytes:
    """All bytes of all files."""
    return b"".join(path.read_bytes() for path in directory.iterdir())


async def ask(
    channel: grpc.aio.Channel,
    text: str,
    mode: pb.ResponseCacheMode.ValueType = USE,
) -> list[pb.GenerateResponse]:
    request = pb.GenerateRequest(
        request_id=str(uuid.uuid4()),
        prompt=prompt(text),
        options=pb.GenerationOptions(response_cache=mode),
    )
    return [event async for event in GatewayServiceStub(channel).Generate(request)]


def text(events: list[pb.GenerateResponse]) -> str:
    return "".join(event.text_delta for event in events)


async def test_the_second_time_no_model_is_asked_and_the_stream_is_the_same(
    tmp_path: Path,
    model: Served,
) -> None:
    async with serving(tmp_path, model) as channel:
        first, second = await ask(channel, "long"), await ask(channel, "long")
    assert len(model.simulator.captured) == 1
    assert text(first) == text(second) == ANSWER
    assert [event.sequence for event in second] == list(range(1, len(second) + 1))
    assert len(second) > 2
    given, stored = first[-1].completed, second[-1].completed
    assert (given.from_response_cache, given.calls) == (False, 1)
    assert given.usage.output_tokens > 0
    assert (stored.from_response_cache, stored.calls) == (True, 0)
    assert stored.usage == common.TokenUsage()
    for completed in (given, stored):
        completed.ClearField("usage")
        completed.ClearField("calls")
        completed.ClearField("cost")
        completed.ClearField("cache_savings")
        completed.ClearField("from_response_cache")
    assert given == stored


async def test_the_modes_do_what_they_are_called(tmp_path: Path, model: Served) -> None:
    async with serving(tmp_path, model) as channel:
        asked = []
        for mode in (OFF, USE, USE, OFF, USE, REFRESH, USE):
            told = text(await ask(channel, "counted", mode))
            asked.append((told, len(model.simulator.captured)))
    # The script answers "the first" once; afterwards it gives its default answer.
    assert asked == [
        ("the first", 1),
        ("another one", 2),
        ("another one", 2),
        ("another one", 3),
        ("another one", 3),
        ("another one", 4),
        ("another one", 4),
    ]


async def test_a_refreshed_answer_takes_the_place_of_the_old_one(tmp_path: Path, model: Served) -> None:
    async with serving(tmp_path, model) as channel:
        told = [text(await ask(channel, "counted", mode)) for mode in (USE, USE, REFRESH, USE)]
    assert told == ["the first", "the first", "another one", "another one"]
    assert len(model.simulator.captured) == 2


async def test_an_object_is_stored_too(tmp_path: Path, model: Served) -> None:
    schema = pb.ResponseSchema(name="answer", document=b'{"type": "object", "required": ["a"]}')
    async with serving(tmp_path, model) as channel:
        ends = []
        for _ in range(2):
            request = pb.GenerateObjectRequest(
                request_id=str(uuid.uuid4()),
                prompt=prompt("object"),
                options=pb.GenerationOptions(response_cache=USE),
                schema=schema,
            )
            events = [event async for event in GatewayServiceStub(channel).GenerateObject(request)]
            assert all(json.loads(event.partial)["a"] == 1 for event in events[:-1])
            assert len(events) > 1
            ends.append(events[-1].completed)
    assert [json.loads(end.value)["b"] for end in ends] == ["b" * 200] * 2
    assert [end.from_response_cache for end in ends] == [False, True]
    assert len(model.simulator.captured) == 1


async def test_equal_requests_at_the_same_time_are_one_request_to_the_model(
    tmp_path: Path,
    model: Served,
) -> None:
    async with serving(tmp_path, model) as channel:
        answers = await asyncio.gather(*(ask(channel, "slow") for _ in range(8)))
    assert len(model.simulator.captured) == 1
    assert {text(events) for events in answers} == {"a slow answer"}
    assert sum(events[-1].completed.calls for events in answers) == 1


async def test_a_replica_with_a_database_of_its_own_finds_the_answer_in_redis(
    tmp_path: Path,
    model: Served,
    redis_url: str,
) -> None:
    told = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        async with serving(tmp_path / name, model, redis_url=redis_url) as channel:
            told.append(text(await ask(channel, "long")))
    assert told == [ANSWER, ANSWER]
    assert len(model.simulator.captured) == 1


async def test_without_its_redis_server_a_gateway_answers_all_the_same(tmp_path: Path, model: Served) -> None:
    with RedisProcess() as process:
        async with serving(tmp_path, model, redis_url=process.url) as channel:
            process.kill()
            told = [text(await ask(channel, "long")) for _ in range(2)]
            process.start()
    assert told == [ANSWER, ANSWER]
    assert len(model.simulator.captured) == 1


async def test_a_replica_on_the_same_postgresql_database_finds_the_answer_there(
    tmp_path: Path,
    model: Served,
    postgresql: PostgresqlProcess,
) -> None:
    told = []
    with postgresql.database() as url:
        for _ in range(2):
            async with serving(tmp_path, model, database_url=url) as channel:
                told.append(text(await ask(channel, "long")))
    assert told == [ANSWER, ANSWER]
    assert len(model.simulator.captured) == 1


async def test_what_was_cut_short_is_asked_for_again(tmp_path: Path, model: Served) -> None:
    async with serving(tmp_path, model) as channel:
        for number in (1, 2):
            events = await ask(channel, "cut short")
            assert events[-1].completed.stop_reason == pb.STOP_REASON_LENGTH
            assert len(model.simulator.captured) == number


async def test_a_failure_of_the_one_who_asked_first_is_not_that_of_the_others(
    tmp_path: Path,
    model: Served,
) -> None:
    async with serving(tmp_path, model) as channel:
        outcomes = await asyncio.gather(
            *(ask(channel, "refused once") for _ in range(4)),
            return_exceptions=True,
        )
    told = [text(outcome) for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert told == ["answered then"] * 3
    assert len(model.simulator.captured) == 2


async def test_a_restart_keeps_answers(tmp_path: Path, model: Served) -> None:
    for _ in range(2):
        async with serving(tmp_path, model) as channel:
            assert text(await ask(channel, "long")) == ANSWER
    assert len(model.simulator.captured) == 1


@pytest.mark.parametrize(
    "settings",
    [{"openai_api_key": "sk-canary-2"}, {"model_name": "n"}, {"model_provider": ProviderName.OPENAI}],
)
async def test_another_account_model_or_provider_asks_for_itself(
    tmp_path: Path,
    model: Served,
    settings: dict[str, Any],
) -> None:
    for other in ({}, settings):
        async with serving(tmp_path, model, **other) as channel:
            await ask(channel, "long")
    assert len(model.simulator.captured) == 2


async def test_without_room_every_question_is_asked(tmp_path: Path, model: Served) -> None:
    nothing = {"response_cache_memory_bytes": 0, "response_cache_disk_bytes": 0}
    async with serving(tmp_path, model, **nothing) as channel:
        for number in (1, 2):
            assert text(await ask(channel, "long")) == ANSWER
            assert len(model.simulator.captured) == number
    assert b"an answer of some words" not in contents(tmp_path)


async def test_an_unknown_mode_is_refused_by_its_field(tmp_path: Path, model: Served) -> None:
    async with serving(tmp_path, model) as channel:
        with pytest.raises(InvalidArgumentError, match="response_cache"):
            await ask(channel, "long", 9)  # type: ignore[arg-type]


async def test_a_gateway_of_another_process_uses_stored_answers_too(tmp_path: Path, model: Served) -> None:
    async def accept(_value: object) -> list[Any]:
        return []

    question = GenerateRequest(
        None,
        (ChatMessage.user("object"),),
        ResponseSchema("answer", {"type": "object"}),
        response_cache=ResponseCacheMode.USE,
    )
    checked = replace(question, schema=ResponseSchema("answer", {"type": "object"}, accept))
    async with serving(tmp_path, model) as channel:
        gateway = RemoteModelGateway(channel)
        told = [await gateway.generate(one) for one in (question, question, checked)]
    assert [completion.from_response_cache for completion in told] == [False, True, False]
    assert [completion.calls for completion in told] == [1, 0, 1]
    assert len(model.simulator.captured) == 2


async def test_neither_prompt_nor_answer_is_logged_and_the_prompt_is_not_stored(
    tmp_path: Path,
    model: Served,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "peripety")
    async with serving(tmp_path, model) as channel:
        for mode in (USE, USE, REFRESH):
            await ask(channel, "long canary", mode)
    assert caplog.messages.count("call") == 3
    written = repr([vars(record) for record in caplog.records])
    files = contents(tmp_path)
    assert b"some words" in files
    for secret in ("canary", "some words"):
        assert secret not in written
    assert b"canary" not in files
