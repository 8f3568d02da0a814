"""Stored conversations over a real channel, in front of a model that caches and bills as it is documented."""

from __future__ import annotations

import json
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.duration_pb2 import Duration

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.providers import PROVIDERS, channel_to, config_of
from support.llmsim.simulator import Served, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    import grpc.aio

    from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceAsyncStub


ANTHROPIC, OPENAI = PROVIDERS[0], PROVIDERS[1]
SYSTEM = "Stay with these instructions. " * 400
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Client:
    """A caller of the service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.gateway: GatewayServiceAsyncStub = GatewayServiceStub(channel)

    async def create(self, **fields: Any) -> pb.Conversation:
        request = pb.CreateConversationRequest(**{"request_id": new_id(), **fields})
        return (await self.gateway.CreateConversation(request)).conversation

    async def say(self, conversation: str, text: str = "u", **fields: Any) -> pb.Completion:
        message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])
        asked = {"request_id": new_id(), "prompt": pb.Prompt(messages=[message]), **fields}
        request = pb.GenerateRequest(conversation_id=conversation, **asked)
        events = [event async for event in self.gateway.Generate(request)]
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        return events[-1].completed

    async def get(self, conversation: str) -> pb.Conversation:
        request = pb.GetConversationRequest(conversation_id=conversation)
        return (await self.gateway.GetConversation(request)).conversation

    async def turns(self, conversation: str) -> list[pb.ConversationTurn]:
        request = pb.ListConversationTurnsRequest(conversation_id=conversation)
        return list((await self.gateway.ListConversationTurns(request)).turns)

    async def fork(self, conversation: str, count: int | None = None) -> pb.Conversation:
        request = pb.ForkConversationRequest(
            request_id=new_id(),
            conversation_id=conversation,
            turn_count=count,
        )
        return (await self.gateway.ForkConversation(request)).conversation

    async def rewind(self, conversation: str, count: int, expected: int | None = None) -> pb.Conversation:
        request = pb.RewindConversationRequest(
            request_id=new_id(),
            conversation_id=conversation,
            turn_count=count,
            expected_turn_count=expected,
        )
        return (await self.gateway.RewindConversation(request)).conversation


def new_id() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def model() -> Iterator[Served]:
    scenario = ScriptBuilder().respond_to("broken", "no JSON at all").respond_to_any("an answer of words")
    with served(scenario.build()) as server:
        yield server


@asynccontextmanager
async def client_of(tmp_path: Path, model: Served, **settings: Any) -> AsyncIterator[Client]:
    async with channel_to(tmp_path, ANTHROPIC, model.url, **settings) as channel:
        yield Client(channel)


async def test_on_the_second_turn_only_the_new_message_costs_its_full_price(
    tmp_path: Path,
    model: Served,
) -> None:
    async with client_of(tmp_path, model) as client:
        one = await client.create(system=SYSTEM)
        first = await client.say(one.conversation_id, "a")
        second = await client.say(one.conversation_id, "b")
    asked = [call.request for call in model.simulator.captured]
    assert [request.system for request in asked] == [SYSTEM, SYSTEM]
    assert [request.messages for request in asked] == [1, 3]
    assert first.usage.cache_write_tokens == first.usage.input_tokens
    assert second.usage.cache_read_tokens == first.usage.input_tokens
    fresh = second.usage.input_tokens - second.usage.cache_read_tokens - second.usage.cache_write_tokens
    assert fresh == 0
    assert second.usage.cache_write_tokens < 30
    assert 0 < second.cost.pico_units < first.cost.pico_units / 5
    assert second.cache_savings.pico_units > 0
    assert len(second.cache_plan.breakpoints) <= 4


async def test_a_conversation_tells_its_turns_and_what_all_of_them_used(
    tmp_path: Path,
    model: Served,
) -> None:
    async with client_of(tmp_path, model) as client:
        one = await client.create(
            system="s",
            history=pb.HistoryPolicy(max_turns=7),
            budget=common.Budget(max_calls=9),
            tools=[
                pb.Tool(name="t:1", description="d", input_schema=json.dumps({"type": "object"}).encode()),
            ],
        )
        completions = [await client.say(one.conversation_id, text) for text in "ab"]
        stored, turns = await client.get(one.conversation_id), await client.turns(one.conversation_id)
    assert (stored.system, stored.turn_count, stored.history.max_turns) == ("s", 2, 7)
    assert (stored.tools, stored.budget) == (one.tools, one.budget)
    assert stored.usage.calls == 2
    assert stored.usage.tokens.output_tokens == sum(each.usage.output_tokens for each in completions)
    assert stored.usage.cost.pico_units == sum(each.cost.pico_units for each in completions)
    assert [turn.completion for turn in turns] == completions
    assert [turn.messages[0].parts[0].text for turn in turns] == ["a", "b"]
    assert [completion.conversation_turn for completion in completions] == [1, 2]


async def test_a_turn_is_told_again_after_a_restart(tmp_path: Path, model: Served) -> None:
    request_id = new_id()
    async with client_of(tmp_path, model) as client:
        one = await client.create()
        first = await client.say(one.conversation_id, request_id=request_id)
    async with client_of(tmp_path, model) as client:
        assert await client.say(one.conversation_id, request_id=request_id) == first
        with pytest.raises(AlreadyExistsError):
            await client.say(one.conversation_id, "something else", request_id=request_id)
        assert (await client.get(one.conversation_id)).turn_count == 1
    assert len(model.simulator.captured) == 1


async def test_forks_and_rewound_turns_go_on_from_what_they_kept(tmp_path: Path, model: Served) -> None:
    async with client_of(tmp_path, model) as client:
        one = await client.create(system=SYSTEM)
        for text in "ab":
            await client.say(one.conversation_id, text)
        fork = await client.fork(one.conversation_id, 1)
        shared = await client.say(fork.conversation_id, "c")
        with pytest.raises(ConflictError):
            await client.rewind(one.conversation_id, 1, expected=3)
        rewound = await client.rewind(one.conversation_id, 1, expected=2)
        assert (fork.parent_conversation_id, fork.parent_turn_count) == (one.conversation_id, 1)
        assert rewound.turn_count == 1
        await client.say(one.conversation_id, "d")
        assert [turn.messages[0].parts[0].text for turn in await client.turns(one.conversation_id)] == [
            "a",
            "d",
        ]
    assert shared.usage.cache_read_tokens > len(SYSTEM) // 5


async def test_an_invalid_object_leaves_no_turn_but_its_cost(tmp_path: Path, model: Served) -> None:
    schema = pb.ResponseSchema(name="answer", document=json.dumps(SCHEMA).encode())
    async with client_of(tmp_path, model) as client:
        one = await client.create()
        with pytest.raises(FailedPreconditionError) as caught:
            await client.say(one.conversation_id, "broken", schema=schema)
        stored = await client.get(one.conversation_id)
    assert caught.value.code == "ANSWER_INVALID"
    assert (stored.turn_count, stored.usage.calls) == (0, 2)
    assert stored.usage.cost.pico_units > 0


async def test_an_advisory_answer_is_a_turn_whatever_is_wrong_with_it(tmp_path: Path, model: Served) -> None:
    advisory = pb.ResponseSchema(name="n", document=json.dumps(SCHEMA).encode(), advisory=True)
    async with client_of(tmp_path, model) as client:
        one = await client.create(system=SYSTEM)
        first = await client.say(one.conversation_id, "broken", schema=advisory)
        second = await client.say(one.conversation_id, "broken again", schema=advisory)
        kept = await client.turns(one.conversation_id)
    assert [finding.code for finding in first.findings] == ["NOT_JSON"]
    assert (first.calls, first.conversation_turn, second.conversation_turn) == (1, 1, 2)
    assert [turn.completion.text for turn in kept] == ["no JSON at all"] * 2
    assert kept[0].completion.findings == first.findings


async def test_a_budget_ends_a_conversation_before_it_is_passed(tmp_path: Path, model: Served) -> None:
    async with client_of(tmp_path, model) as client:
        one = await client.create(budget=common.Budget(max_calls=2))
        for _ in range(2):
            await client.say(one.conversation_id)
        with pytest.raises(ResourceExhaustedError, match="conversation"):
            await client.say(one.conversation_id)
    assert len(model.simulator.captured) == 2
    async with client_of(tmp_path, model) as client:
        with pytest.raises(ResourceExhaustedError, match="conversation"):
            await client.say(one.conversation_id)
    assert len(model.simulator.captured) == 2


async def test_any_turn_may_ask_another_provider(tmp_path: Path, model: Served) -> None:
    here = config_of(OPENAI, model.url).model_dump(include={"openai_api_base", "openai_api_key"})
    options = pb.GenerationOptions(model=f"openai/{OPENAI.model}")
    async with client_of(tmp_path, model, **here) as client:
        one = await client.create(system=SYSTEM)
        answers = [
            await client.say(one.conversation_id, "a"),
            await client.say(one.conversation_id, "b", options=options),
            await client.say(one.conversation_id, "c"),
        ]
    assert [answer.provider for answer in answers] == ["anthropic", "openai", "anthropic"]
    assert answers[2].usage.cache_read_tokens == answers[0].usage.input_tokens


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"request_id": "x"}, "request_id"),
        ({"history": pb.HistoryPolicy(max_turns=-1)}, "history.max_turns"),
        ({"history": pb.HistoryPolicy(strategy=9)}, "history.strategy"),  # type: ignore[arg-type]
        ({"budget": common.Budget(max_tokens=-1)}, "budget.max_tokens"),
        ({"budget": common.Budget(max_time=Duration(seconds=1))}, "budget.max_time"),
        ({"tools": [pb.Tool(name="t", input_schema=b"{")]}, "tools[0].input_schema"),
        ({"tools": [pb.Tool(name="t", input_schema=b"{}")]}, "tools[0].input_schema"),
    ],
)
async def test_what_cannot_be_a_conversation_is_refused_by_its_field(
    tmp_path: Path,
    model: Served,
    fields: dict[str, Any],
    field: str,
) -> None:
    async with client_of(tmp_path, model) as client:
        with pytest.raises(InvalidArgumentError) as caught:
            await client.create(**fields)
    assert field in [violation.field for violation in caught.value.violations]


async def test_what_belongs_to_a_conversation_is_not_said_in_its_turns(tmp_path: Path, model: Served) -> None:
    async with client_of(tmp_path, model) as client:
        one = await client.create()
        with pytest.raises(InvalidArgumentError, match=r"prompt\.system"):
            await client.say(one.conversation_id, prompt=pb.Prompt(system="s"))
        with pytest.raises(NotFoundError, match=r"conversation_id"):
            await client.say(new_id())


async def test_conversations_are_listed_and_deleted(tmp_path: Path, model: Served) -> None:
    async with client_of(tmp_path, model) as client:
        made = [(await client.create()).conversation_id for _ in range(3)]
        page = await client.gateway.ListConversations(pb.ListConversationsRequest(page_size=2))
        rest = await client.gateway.ListConversations(
            pb.ListConversationsRequest(page_size=2, page_token=page.next_page_token),
        )
        listed = [each.conversation_id for each in (*page.conversations, *rest.conversations)]
        assert listed == made[::-1]
        request = pb.DeleteConversationRequest(request_id=new_id(), conversation_id=made[0])
        for _ in range(2):
            await client.gateway.DeleteConversation(request)
        with pytest.raises(NotFoundError):
            await client.get(made[0])
