from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.core.concurrency import closing
from peripety.errors import ConflictError, FailedPreconditionError, UnavailableError
from peripety.gateway.conversations.conversation import (
    Conversation,
    HistoryPolicy,
    HistoryStrategy,
    TurnSize,
    first_turn_index,
)
from peripety.gateway.types.message import ChatRole
from peripety.gateway.types.request import Budget, GenerationOptions
from peripety.gateway.types.response import (
    Repairing,
    TextDelta,
)
from support.gateway.fake_gateway import FakeGateway, echoing, saying


def texts(conversation: Conversation) -> list[tuple[ChatRole, str]]:
    return [(message.role, message.text) for message in conversation.messages]


async def test_user_and_assistant_are_kept_together() -> None:
    conversation = Conversation(FakeGateway(echoing), "s")
    await conversation.send("a")
    await conversation.send("b")
    assert texts(conversation) == [
        (ChatRole.USER, "a"),
        (ChatRole.ASSISTANT, "re: a"),
        (ChatRole.USER, "b"),
        (ChatRole.ASSISTANT, "re: b"),
    ]


async def test_each_request_extends_the_one_before() -> None:
    gateway = FakeGateway(echoing)
    conversation = Conversation(gateway, "s", options=GenerationOptions(model="m"))
    for text in "abc":
        await conversation.send(text)
    for earlier, later in zip(gateway.requests, gateway.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert (later.system, later.model) == (earlier.system, earlier.model)


async def test_what_a_turn_says_of_its_options_comes_before_what_the_conversation_says() -> None:
    gateway = FakeGateway(echoing)
    conversation = Conversation(gateway, "s", options=GenerationOptions(model="m", seed=1))
    await conversation.send("a", options=GenerationOptions(seed=2, budget=Budget(max_calls=1)))
    await conversation.send("b")
    asked = [(request.model, request.seed, request.budget) for request in gateway.requests]
    assert asked == [("m", 2, Budget(max_calls=1)), ("m", 1, None)]


async def test_a_failed_turn_leaves_the_conversation_as_it_was() -> None:
    gateway = FakeGateway(echoing)
    conversation = Conversation(gateway, "s")
    await conversation.send("a")
    gateway.answers[1:] = [[TextDelta("half"), UnavailableError("gone")], echoing]
    with pytest.raises(UnavailableError):
        await conversation.send("b")
    assert len(conversation.turns) == 1
    await conversation.send("c")
    assert [turn.user_messages[0].text for turn in conversation.turns] == ["a", "c"]


async def test_an_abandoned_turn_leaves_the_conversation_as_it_was() -> None:
    conversation = Conversation(FakeGateway(echoing), "s")
    async with closing(conversation.stream("a")) as events:
        async for _ in events:
            break
    assert conversation.turns == ()
    await conversation.send("b")
    assert len(conversation.turns) == 1


async def test_a_repair_leaves_no_trace_in_the_history() -> None:
    gateway = FakeGateway([TextDelta("bad"), Repairing(()), *saying("re: a")])
    conversation = Conversation(gateway, "s")
    await conversation.send("a")
    assert texts(conversation) == [(ChatRole.USER, "a"), (ChatRole.ASSISTANT, "re: a")]


async def test_two_turns_at_once_are_refused() -> None:
    conversation = Conversation(FakeGateway(echoing), "s")
    async with closing(conversation.stream("a")) as events:
        await anext(events)
        with pytest.raises(ConflictError):
            await conversation.send("b")


async def test_a_conversation_goes_on_from_earlier_turns() -> None:
    first = Conversation(FakeGateway(echoing), "s")
    await first.send("a")
    second = Conversation(FakeGateway(echoing), "s", turns=first.turns)
    await second.send("b")
    assert [turn.user_messages[0].text for turn in second.turns] == ["a", "b"]
    assert len(first.turns) == 1


COMPACT, SLIDING, REFUSE = HistoryStrategy.COMPACT, HistoryStrategy.SLIDING_WINDOW, HistoryStrategy.REFUSE
SMALL = TurnSize(1, 1)

sizes = st.lists(
    st.builds(TurnSize, st.integers(1, 9), st.integers(0, 9), st.booleans()),
    min_size=1,
    max_size=40,
)
policies = st.builds(
    HistoryPolicy,
    st.sampled_from([COMPACT, SLIDING]),
    st.integers(0, 8),
    st.integers(0, 60),
)


def firsts(policy: HistoryPolicy, turns: list[TurnSize]) -> list[int]:
    """The first turn that is sent with each turn."""
    return [first_turn_index(turns[: end + 1], policy) for end in range(len(turns))]


def test_without_limits_everything_is_sent() -> None:
    assert first_turn_index([SMALL] * 99, HistoryPolicy()) == 0


def test_compaction_cuts_to_half_at_once_and_then_rests() -> None:
    assert firsts(HistoryPolicy(COMPACT, max_turns=4), [SMALL] * 12) == [0] * 5 + [3] * 3 + [6] * 3 + [9]


def test_a_sliding_window_moves_with_every_turn() -> None:
    assert firsts(HistoryPolicy(SLIDING, max_turns=3), [SMALL] * 7) == [0, 0, 0, 0, 1, 2, 3]


def test_tokens_count_with_those_of_the_system_text() -> None:
    policy = HistoryPolicy(COMPACT, max_input_tokens=11)
    assert first_turn_index([SMALL] * 6, policy) == 0
    assert first_turn_index([SMALL] * 6, policy, fixed_tokens=1) == 3
    assert first_turn_index([SMALL] * 6, HistoryPolicy(), context_tokens=10) == 3


def test_a_full_history_is_refused_when_nothing_may_be_left_out() -> None:
    policy = HistoryPolicy(REFUSE, max_turns=2)
    assert first_turn_index([SMALL] * 3, policy) == 0
    with pytest.raises(FailedPreconditionError, match="fork its first turns"):
        first_turn_index([SMALL] * 4, policy)


def test_results_of_tools_are_not_cut_from_their_calls() -> None:
    results = TurnSize(1, 1, may_be_first=False)
    turns = [SMALL, results, results, SMALL, results, results]
    assert first_turn_index(turns, HistoryPolicy(SLIDING, max_turns=1)) == 3
    assert first_turn_index([SMALL, *[results] * 9], HistoryPolicy(SLIDING, max_turns=1)) == 0


@pytest.mark.parametrize("strategy", [COMPACT, SLIDING])
def test_each_turn_of_a_long_history_is_looked_at_a_few_times(strategy: HistoryStrategy) -> None:
    looks = 0

    class Turns(list[TurnSize]):
        def __getitem__(self, place: Any) -> Any:
            nonlocal looks
            looks += len(range(len(self))[place]) if isinstance(place, slice) else 1
            return super().__getitem__(place)

    first_turn_index(Turns([SMALL] * 2_000), HistoryPolicy(strategy, max_turns=500))
    assert looks < 20_000


@given(sizes, policies)
def test_a_history_is_cut_forward_only_and_at_places_where_a_prompt_may_begin(
    turns: list[TurnSize],
    policy: HistoryPolicy,
) -> None:
    moved = firsts(policy, turns)
    assert moved == sorted(moved)
    assert all(first == 0 or turns[first].may_be_first for first in moved)


@given(sizes, st.integers(1, 8))
def test_no_more_turns_are_sent_than_the_limit_where_that_can_be(turns: list[TurnSize], limit: int) -> None:
    first = first_turn_index(turns, HistoryPolicy(SLIDING, max_turns=limit))
    begins = [index for index in range(len(turns)) if turns[index].may_be_first]
    possible = [begin for begin in begins if len(turns) - 1 - begin <= limit]
    if len(turns) - 1 > limit and possible:
        assert len(turns) - 1 - first <= limit
