"""Conversion of earlier turns, common to all providers."""

from __future__ import annotations

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.providers.history_compat import (
    CallIdGenerator,
    instructions_to_user_text,
    parse_arguments,
    tool_names_by_call,
)
from peripety.gateway.types.message import ChatMessage, ChatRole, ToolCall


def calling(*ids: str) -> ChatMessage:
    return ChatMessage(ChatRole.ASSISTANT, tuple(ToolCall(call_id, f"t{call_id}", "{}") for call_id in ids))


def test_arguments_become_an_object() -> None:
    assert parse_arguments(ToolCall("c", "t", ' {"a": [1]} ')) == {"a": [1]}


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": NaN}', "null"])
def test_arguments_that_are_no_object_are_refused_with_the_call_they_belong_to(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="'c'"):
        parse_arguments(ToolCall("c", "t", text))


def test_instructions_for_the_user_to_say_are_marked_as_such() -> None:
    assert instructions_to_user_text(ChatMessage.system("a\nb")) == "<system>\na\nb\n</system>"


def test_every_result_can_be_named_after_its_tool() -> None:
    assert tool_names_by_call([ChatMessage.user("a"), calling("1", "2")]) == {"1": "t1", "2": "t2"}


def test_calls_get_the_same_ids_whenever_the_same_is_asked() -> None:
    messages = [ChatMessage.user("a"), calling("1")]
    ids, again = CallIdGenerator(messages), CallIdGenerator(messages)
    assert [ids.next(), ids.next()] == [again.next(), again.next()]


def test_an_id_that_the_conversation_has_is_not_given_again() -> None:
    first, second = CallIdGenerator([ChatMessage.user("a")]), CallIdGenerator([calling("call_1_0")])
    assert (first.next(), first.next()) == ("call_1_0", "call_1_1")
    assert second.next() == "call_1_1"


def test_an_id_that_an_earlier_call_has_is_replaced_and_one_that_is_new_is_kept() -> None:
    ids = CallIdGenerator([ChatMessage.user("a"), calling("x")])
    assert [ids.make_unique(each) for each in ("y", "x", "")] == ["y", "call_2_0", "call_2_1"]
