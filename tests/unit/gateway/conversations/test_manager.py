"""Stored conversations, on both databases."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.idempotency.store import RequestKey
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    UnavailableError,
)
from peripety.gateway.conversations.conversation import (
    ConversationConfig,
    HistoryPolicy,
    HistoryStrategy,
    PendingTurn,
)
from peripety.gateway.conversations.manager import ConversationManager
from peripety.gateway.conversations.store import ConversationStore
from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.types.message import ChatMessage, ChatRole, Text, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import Budget, GenerateRequest
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    Usage,
    collect_completion,
)
from support.gateway.fake_gateway import FakeGateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.storage.database import Database
    from peripety.gateway.types.response import GatewayEvent


DAY = 24 * 3600 * 1_000_000
TOOL = Tool("t", "d", {"type": "object"})


def answer(text: str, *parts: Any) -> Completion:
    message = ChatMessage(ChatRole.ASSISTANT, (Text(text), *parts))
    return Completion(message, None, Usage(10, 2, 4, 1), StopReason.END, "m", "p", cost=5, cache_savings=3)


class Setting:
    """Conversations over one gateway, and a clock that the test sets."""

    def __init__(self, database: Database) -> None:
        self.gateway = FakeGateway(self._respond)
        self.next: Completion | PeripetyError | None = None
        self.asked, self.opened = asyncio.Event(), asyncio.Event()
        self.opened.set()
        self.time = 1_000_000
        store = ConversationStore(database, self.now)
        self.conversations = ConversationManager(self.gateway, store, lambda _request: 0, self.now)

    async def _respond(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Answer `re: <last message>`, or with `next`, when the test has opened it."""
        self.asked.set()
        yield TextDelta("re")
        await self.opened.wait()
        if isinstance(self.next, PeripetyError):
            raise self.next
        yield Completed(self.next or answer(f"re: {request.messages[-1].text}"))

    def now(self) -> int:
        self.time += 1
        return self.time

    async def create(self, **charter: Any) -> str:
        return (await self.conversations.create(ConversationConfig(**charter), named())).conversation_id

    async def say(self, conversation_id: str, text: str = "u", **options: Any) -> Completion:
        request = options.pop("request", None) or GenerateRequest(None, (ChatMessage.user(text),))
        question = PendingTurn(conversation_id, options.pop("named", None) or named(), request, **options)
        return await collect_completion(self.conversations.stream(question))

    async def texts(self, conversation_id: str) -> list[str]:
        page = await self.conversations.turns(conversation_id, 0, "")
        return [turn.turn.user_messages[0].text for turn in page.items]

    @property
    def sent(self) -> list[str]:
        return [message.text for message in self.gateway.requests[-1].messages]


@pytest.fixture
def setting(database: Database) -> Setting:
    return Setting(database)


def named(digest: str = "d") -> RequestKey:
    return RequestKey(str(uuid.uuid4()), digest)


async def test_a_turn_is_kept_with_all_that_was_said_and_what_it_used(setting: Setting) -> None:
    one = await setting.create(system="s", tools=(TOOL,))
    first = await setting.say(one, "a")
    await setting.say(one, "b")
    assert setting.sent == ["a", "re: a", "b"]
    assert (setting.gateway.requests[-1].system, setting.gateway.requests[-1].tools) == ("s", (TOOL,))
    kept = (await setting.conversations.turns(one, 0, "")).items
    assert [turn.number for turn in kept] == [1, 2]
    assert kept[0].turn.completion == first == replace(answer("re: a"), conversation_turn=1)
    conversation = await setting.conversations.get(one)
    assert conversation.turn_count == 2
    assert (conversation.spent.calls, conversation.spent.usage.input_tokens) == (2, 20)
    assert (conversation.spent.cost, conversation.spent.cache_savings) == (10, 6)
    assert conversation.created < conversation.updated


async def test_the_same_request_again_tells_the_same_turn_and_asks_nobody(setting: Setting) -> None:
    one, name = await setting.create(), named()
    first = await setting.say(one, "a", named=name)
    assert await setting.say(one, "a", named=name) == first
    assert len(setting.gateway.requests) == 1
    with pytest.raises(AlreadyExistsError):
        await setting.say(one, "b", named=replace(name, digest="other"))


async def test_an_answer_that_fails_leaves_no_turn_but_what_it_used(setting: Setting) -> None:
    one = await setting.create()
    used = {"calls": "2", "input_tokens": "7", "output_tokens": "1"}
    details = {name: used.get(name, "0") for name in ("calls", *Usage.__dataclass_fields__)}
    setting.next = FailedPreconditionError("x", code="ANSWER_INVALID", details=details)
    with pytest.raises(FailedPreconditionError):
        await setting.say(one)
    setting.next = UnavailableError("x")
    with pytest.raises(UnavailableError):
        await setting.say(one)
    conversation = await setting.conversations.get(one)
    assert (conversation.turn_count, conversation.spent.calls) == (0, 2)
    assert conversation.spent.usage.input_tokens == 7


async def test_one_turn_at_a_time(setting: Setting) -> None:
    one = await setting.create()
    setting.opened.clear()
    first = asyncio.create_task(setting.say(one, "a"))
    await setting.asked.wait()
    with pytest.raises(ConflictError, match="conversation busy"):
        await setting.say(one, "b")
    setting.opened.set()
    await first
    await setting.say(one, "b")
    assert await setting.texts(one) == ["a", "b"]


async def test_of_two_processes_one_takes_a_turn(database: Database) -> None:
    here, there = Setting(database), Setting(database)
    one = await here.create()
    here.opened.clear()
    first = asyncio.create_task(here.say(one, "a"))
    await here.asked.wait()
    await there.say(one, "b")
    here.opened.set()
    with pytest.raises(ConflictError) as caught:
        await first
    assert caught.value.code == "STALE_TURN"
    assert await here.texts(one) == ["b"]


async def test_a_turn_for_another_length_of_the_conversation_asks_nobody(setting: Setting) -> None:
    one = await setting.create()
    with pytest.raises(ConflictError, match="0 turns"):
        await setting.say(one, expected_turn_count=1)
    assert not setting.gateway.requests
    await setting.say(one, expected_turn_count=0)


async def test_who_stops_waiting_for_a_whole_answer_finds_it_kept(setting: Setting) -> None:
    one = await setting.create()
    stream = setting.conversations.stream(
        PendingTurn(one, named(), GenerateRequest(None, (ChatMessage.user("a"),))),
    )
    assert await anext(stream) == TextDelta("re")
    assert isinstance(await anext(stream), Completed)
    await stream.aclose()  # type: ignore[attr-defined]
    assert await setting.texts(one) == ["a"]


async def test_an_answer_that_is_being_kept_when_its_caller_leaves_is_told_to_the_next_one(
    setting: Setting,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, name = await setting.create(), named()
    committing, let_go = asyncio.Event(), asyncio.Event()
    commit = ConversationStore.commit

    async def slow(*args: Any) -> None:
        committing.set()
        await let_go.wait()
        await commit(*args)

    monkeypatch.setattr(ConversationStore, "commit", slow)
    caller = asyncio.create_task(setting.say(one, "a", named=name))
    await committing.wait()
    caller.cancel()
    await asyncio.sleep(0)
    with pytest.raises(ConflictError, match="conversation busy"):
        await setting.say(one, "a", named=name)
    let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (await setting.say(one, "a", named=name)).text == "re: a"
    assert len(setting.gateway.requests) == 1


async def test_of_the_same_request_in_two_processes_one_becomes_a_turn(database: Database) -> None:
    here, there = Setting(database), Setting(database)
    one, name = await here.create(), named()
    here.opened.clear()
    first = asyncio.create_task(here.say(one, "a", named=name))
    await here.asked.wait()
    told = await there.say(one, "a", named=name)
    here.opened.set()
    with pytest.raises(ConflictError):
        await first
    assert await here.say(one, "a", named=name) == told
    assert await here.texts(one) == ["a"]


async def test_a_turn_is_not_kept_behind_others_than_it_was_asked_behind(database: Database) -> None:
    here, there = Setting(database), Setting(database)
    there.time += 1_000
    one = await here.create()
    await here.say(one, "a")
    here.asked.clear()
    here.opened.clear()
    second = asyncio.create_task(here.say(one, "b"))
    await here.asked.wait()
    await there.conversations.rewind(one, 0, None, named())
    await there.say(one, "c")
    here.opened.set()
    with pytest.raises(ConflictError) as caught:
        await second
    assert caught.value.code == "STALE_TURN"
    assert await here.texts(one) == ["c"]


async def test_a_conversation_goes_on_behind_an_answer_that_says_nothing(setting: Setting) -> None:
    one = await setting.create()
    silent = replace(answer(""), message=ChatMessage(ChatRole.ASSISTANT, ()), stop_reason=StopReason.LENGTH)
    setting.next = silent
    await setting.say(one, "a")
    setting.next = None
    await setting.say(one, "b")
    assert setting.sent == ["a", "(no answer)", "b"]
    normalize_messages(setting.gateway.requests[-1].messages)
    kept = (await setting.conversations.turns(one, 0, "")).items
    assert kept[0].turn.completion.message == silent.message


async def test_a_fork_begins_with_the_same_turns_and_goes_its_own_way(setting: Setting) -> None:
    one = await setting.create(system="s")
    for text in "abc":
        await setting.say(one, text)
    name = named()
    fork = await setting.conversations.fork(one, 2, name)
    assert (await setting.conversations.fork(one, 2, name)).conversation_id == fork.conversation_id
    assert (fork.parent_id, fork.parent_turn_count, fork.turn_count) == (one, 2, 2)
    assert fork.spent.calls == 0
    await setting.say(fork.conversation_id, "d")
    assert setting.sent == ["a", "re: a", "b", "re: b", "d"]
    await setting.conversations.delete(one, named())
    assert await setting.texts(fork.conversation_id) == ["a", "b", "d"]
    whole = await setting.conversations.fork(fork.conversation_id, None, named())
    assert whole.turn_count == 3


async def test_turns_that_are_taken_back_are_gone_but_paid_for(setting: Setting) -> None:
    one, name, turn = await setting.create(), named(), named()
    await setting.say(one, "a")
    await setting.say(one, "b", named=turn)
    with pytest.raises(ConflictError):
        await setting.conversations.rewind(one, 1, 3, named())
    rewound = await setting.conversations.rewind(one, 1, 2, name)
    assert (rewound.turn_count, rewound.spent.calls) == (1, 2)
    await setting.say(one, "c")
    assert (await setting.conversations.rewind(one, 1, 2, name)).turn_count == 2
    assert await setting.texts(one) == ["a", "c"]
    assert setting.sent == ["a", "re: a", "c"]


async def test_a_turn_that_was_taken_back_is_not_told_again(setting: Setting) -> None:
    one, name = await setting.create(), named()
    await setting.say(one, "a", named=name)
    await setting.conversations.rewind(one, 0, None, named())
    for _ in range(2):
        with pytest.raises(FailedPreconditionError, match="rewound") as caught:
            await setting.say(one, "a", named=name)
        assert caught.value.code == "TURN_REWOUND"
        await setting.say(one, "b")


@pytest.mark.parametrize("count", [-1, 2])
async def test_no_more_turns_can_remain_or_be_shared_than_there_are(setting: Setting, count: int) -> None:
    one = await setting.create()
    await setting.say(one)
    with pytest.raises(InvalidArgumentError, match=r"turn_count"):
        await setting.conversations.fork(one, count, named())
    with pytest.raises(InvalidArgumentError, match=r"turn_count"):
        await setting.conversations.rewind(one, count, None, named())


async def test_what_was_deleted_is_gone_and_deleting_it_again_is_no_error(setting: Setting) -> None:
    one, name = await setting.create(), named()
    await setting.say(one)
    await setting.conversations.delete(one, name)
    await setting.conversations.delete(one, name)
    for gone in (
        setting.conversations.get(one),
        setting.conversations.delete(one, named()),
        setting.conversations.turns(one, 0, ""),
        setting.conversations.fork(one, None, named()),
        setting.say(one),
    ):
        with pytest.raises(NotFoundError, match=r"conversation_id"):
            await gone


async def test_the_same_request_starts_one_conversation_for_a_day(setting: Setting) -> None:
    name = named()
    first = await setting.conversations.create(ConversationConfig(), name)
    assert await setting.conversations.create(ConversationConfig(), name) == first
    with pytest.raises(AlreadyExistsError):
        await setting.conversations.create(ConversationConfig(system="s"), replace(name, digest="other"))
    setting.time += DAY
    await setting.create()
    assert (await setting.conversations.create(ConversationConfig(), name)) != first


async def test_conversations_are_listed_newest_first_page_by_page(setting: Setting) -> None:
    made = [await setting.create() for _ in range(5)]
    listed, token = [], ""
    while True:
        page = await setting.conversations.list(2, token)
        listed += [one.conversation_id for one in page.items]
        token = page.next_page_token
        if not token:
            break
    assert listed == made[::-1]


async def test_a_long_history_is_cut_before_it_is_sent_and_stays_stored(setting: Setting) -> None:
    one = await setting.create(history=HistoryPolicy(max_turns=2))
    for text in "abcd":
        await setting.say(one, text)
    assert setting.sent == ["c", "re: c", "d"]
    assert await setting.texts(one) == list("abcd")
    full = await setting.create(history=HistoryPolicy(HistoryStrategy.REFUSE, max_turns=1))
    await setting.say(full)
    await setting.say(full)
    with pytest.raises(FailedPreconditionError, match="full"):
        await setting.say(full)


async def test_tools_are_called_and_answered_over_two_turns(setting: Setting) -> None:
    one = await setting.create(tools=(TOOL,))
    setting.next = replace(answer("", ToolCall("c", "t", "{}")), stop_reason=StopReason.TOOL_USE)
    await setting.say(one, "a")
    setting.next = None
    result = ChatMessage(ChatRole.USER, (ToolResult("c", "r"),))
    await setting.say(one, request=GenerateRequest(None, (result,)))
    assert [message.role for message in setting.gateway.requests[-1].messages] == [
        ChatRole.USER,
        ChatRole.ASSISTANT,
        ChatRole.USER,
    ]
    assert setting.gateway.requests[-1].messages[1].tool_calls == (ToolCall("c", "t", "{}"),)


async def test_every_turn_counts_towards_the_budget_of_its_conversation(setting: Setting) -> None:
    cap, own = Budget(max_calls=2, max_tokens=30, max_cost=100), Budget(max_calls=1)
    one = await setting.create(budget=cap)
    await setting.say(one, request=GenerateRequest(None, (ChatMessage.user("a"),), budget=own))
    asked = setting.gateway.requests[-1]
    assert (asked.conversation_id, asked.conversation_budget, asked.budget) == (one, cap, own)
