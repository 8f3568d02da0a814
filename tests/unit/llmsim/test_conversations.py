"""Assignment of requests to conversations."""

from __future__ import annotations

from peripety.llmsim.conversations import SimConversation, SimConversations
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import (
    Api,
    BilledUsage,
    SimMessage,
    SimReply,
    SimRequest,
    SimRole,
    SimStopReason,
    SimToolCall,
    SimToolResult,
    TextPart,
    ToolUsePart,
)


def user(text: str) -> SimMessage:
    return SimMessage(SimRole.USER, text)


def assistant(text: str, *calls: SimToolCall) -> SimMessage:
    return SimMessage(SimRole.ASSISTANT, text, calls)


def request(*messages: SimMessage, key: str = "k", conversation: str | None = None) -> SimRequest:
    return SimRequest(Api.OPENAI_CHAT, "m", messages, key=key, conversation=conversation)


def reply(*parts: TextPart | ToolUsePart) -> SimReply:
    return SimReply("id", 0.0, "m", parts, SimStopReason.END, BilledUsage())


def found(asked: SimRequest) -> SimConversation:
    return SimConversations(StateTable(), shared=False).conversation_of(asked)


def test_a_history_is_found_where_the_answer_left_it() -> None:
    first = found(request(user("a")))
    second = found(request(user("a"), assistant("one two"), user("b")))
    assert second.position_key == first.position_key_after(reply(TextPart(("one ", "two"))))
    assert second.scope == first.scope


def test_what_clients_write_differently_does_not_matter() -> None:
    plain = found(request(user("a"), assistant("one two"), user("b")))
    merged = found(request(user(" a\n"), assistant("one"), assistant("  two"), user("b")))
    assert merged.position_key == plain.position_key


def test_tool_calls_and_results_are_part_of_the_history() -> None:
    call = SimToolCall("f", {"x": 1, "y": 2}, "id-1")
    result = SimMessage(SimRole.USER, results=(SimToolResult("3", "id-1"),))
    first = found(request(user("a")))
    second = found(request(user("a"), assistant("", call), result))
    third = found(request(user("a"), assistant("", call), result, assistant("done"), user("b")))
    other = found(request(user("a"), assistant("", SimToolCall("f", {"x": 2})), result))
    assert second.position_key == first.position_key_after(
        reply(ToolUsePart("id-2", "f", ('{"y":2,', '"x":1}'))),
    )
    assert third.position_key == second.position_key_after(reply(TextPart(("done",))))
    assert other.position_key != second.position_key


def test_histories_that_differ_are_kept_apart() -> None:
    one = found(request(user("a"), assistant("b"), user("c")))
    assert one.position_key != found(request(user("a"), assistant("x"), user("c"))).position_key
    assert one.position_key != found(request(user("x"), assistant("b"), user("c"))).position_key
    assert one.position_key == found(request(user("a"), assistant("b"), user("x"))).position_key


def test_keys_share_nothing() -> None:
    assert found(request(user("a"))).scope != found(request(user("a"), key="other")).scope
    named = request(user("a"), conversation="n")
    assert found(named).scope != found(request(user("a"), key="other", conversation="n")).scope


def test_a_named_conversation_is_itself_whatever_is_said() -> None:
    one = found(request(user("a"), conversation="n"))
    two = found(request(user("b"), assistant("c"), user("d"), conversation="n"))
    assert (
        one.scope
        == one.position_key
        == two.scope
        == two.position_key
        == one.position_key_after(reply(TextPart(("x",))))
    )
    assert one.scope != found(request(user("a"), conversation="other")).scope


def test_a_subject_is_what_is_new() -> None:
    call = SimToolCall("f", {})
    results = SimMessage(SimRole.USER, "and this", results=(SimToolResult("r1"), SimToolResult("r2")))
    conversation = found(request(user("old"), assistant("", call), results, user("too")))
    subject = conversation.subject("model")
    assert subject.text == "and this\ntoo"
    assert subject.tool_result == "r1\nr2"
    assert subject.message_index == 1
    assert subject.model == "model"
    assert found(request(user("a"))).subject("m").tool_result is None
