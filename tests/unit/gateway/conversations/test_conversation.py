from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.core.concurrency import closing
from peripety.errors import ConflictError, UnavailableError
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.types.message import ChatMessage, ChatRole
from peripety.gateway.types.request import Budget, GenerateRequest, GenerationOptions
from peripety.gateway.types.response import (
    Completed,
    Completion,
    GatewayEvent,
    Repairing,
    StopReason,
    TextDelta,
    Usage,
    collect_completion,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Gateway:
    """Answers `re: <last message>` after whatever `before` yields, and remembers the requests."""

    def __init__(self) -> None:
        self.requests: list[GenerateRequest] = []
        self.before: list[GatewayEvent | Exception] = []

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        self.requests.append(request)
        for event in self.before:
            if isinstance(event, Exception):
                raise event
            yield event
        text = f"re: {request.messages[-1].text}"
        yield TextDelta(text)
        yield Completed(Completion(ChatMessage.assistant(text), None, Usage(), StopReason.END, "m", "p"))

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))


def texts(conversation: Conversation) -> list[tuple[ChatRole, str]]:
    return [(message.role, message.text) for message in conversation.messages]


async def test_user_and_assistant_are_kept_together() -> None:
    conversation = Conversation(Gateway(), "s")
    await conversation.send("a")
    await conversation.send("b")
    assert texts(conversation) == [
        (ChatRole.USER, "a"),
        (ChatRole.ASSISTANT, "re: a"),
        (ChatRole.USER, "b"),
        (ChatRole.ASSISTANT, "re: b"),
    ]


async def test_each_request_extends_the_one_before() -> None:
    gateway = Gateway()
    conversation = Conversation(gateway, "s", options=GenerationOptions(model="m"))
    for text in "abc":
        await conversation.send(text)
    for earlier, later in zip(gateway.requests, gateway.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert (later.system, later.model) == (earlier.system, earlier.model)


async def test_what_a_turn_says_of_its_options_comes_before_what_the_conversation_says() -> None:
    gateway = Gateway()
    conversation = Conversation(gateway, "s", options=GenerationOptions(model="m", seed=1))
    await conversation.send("a", options=GenerationOptions(seed=2, budget=Budget(max_calls=1)))
    await conversation.send("b")
    asked = [(request.model, request.seed, request.budget) for request in gateway.requests]
    assert asked == [("m", 2, Budget(max_calls=1)), ("m", 1, None)]


async def test_a_failed_turn_leaves_the_conversation_as_it_was() -> None:
    gateway = Gateway()
    conversation = Conversation(gateway, "s")
    await conversation.send("a")
    gateway.before = [TextDelta("half"), UnavailableError("gone")]
    with pytest.raises(UnavailableError):
        await conversation.send("b")
    assert len(conversation.turns) == 1
    gateway.before = []
    await conversation.send("c")
    assert [turn.user_messages[0].text for turn in conversation.turns] == ["a", "c"]


async def test_an_abandoned_turn_leaves_the_conversation_as_it_was() -> None:
    conversation = Conversation(Gateway(), "s")
    async with closing(conversation.stream("a")) as events:
        async for _ in events:
            break
    assert conversation.turns == ()
    await conversation.send("b")
    assert len(conversation.turns) == 1


async def test_a_repair_leaves_no_trace_in_the_history() -> None:
    gateway = Gateway()
    gateway.before = [TextDelta("bad"), Repairing(())]
    conversation = Conversation(gateway, "s")
    await conversation.send("a")
    assert texts(conversation) == [(ChatRole.USER, "a"), (ChatRole.ASSISTANT, "re: a")]


async def test_two_turns_at_once_are_refused() -> None:
    conversation = Conversation(Gateway(), "s")
    async with closing(conversation.stream("a")) as events:
        await anext(events)
        with pytest.raises(ConflictError):
            await conversation.send("b")


async def test_a_conversation_goes_on_from_earlier_turns() -> None:
    first = Conversation(Gateway(), "s")
    await first.send("a")
    second = Conversation(Gateway(), "s", turns=first.turns)
    await second.send("b")
    assert [turn.user_messages[0].text for turn in second.turns] == ["a", "b"]
    assert len(first.turns) == 1
