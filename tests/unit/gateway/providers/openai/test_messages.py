"""What a conversation is in Chat Completions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.providers.openai.request_body import to_messages
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from peripety.gateway.types.request import GenerateRequest
from support.gateway.requests import call_of

CALLING = ChatMessage(
    ChatRole.ASSISTANT,
    (
        Reasoning("hm"),
        ProviderState("deepseek", b"hm"),
        Text("I look."),
        ToolCall("c-1", "gauge", '{"a": 1}'),
        ToolCall("c-2", "a.b", "{}"),
    ),
)
RESULTS = ChatMessage(
    ChatRole.USER,
    (ToolResult("c-1", "7"), ToolResult("c-2", "none left", is_error=True), Text("And now?")),
)


def written(*messages: ChatMessage, provider: str = "openai", model: str = "gpt-5.2") -> list[dict[str, Any]]:
    return to_messages(call_of(GenerateRequest("s", messages), model, provider))


def test_the_results_of_tools_follow_their_calls_as_messages_of_their_own() -> None:
    _, _, called, first, second, after = written(ChatMessage.user("u"), CALLING, RESULTS)
    assert [call["id"] for call in called["tool_calls"]] == ["c-1", "c-2"]
    assert called["tool_calls"][0]["function"] == {"name": "gauge", "arguments": '{"a": 1}'}
    assert called["tool_calls"][1]["function"]["name"].startswith("t_a_b_")
    assert called["content"] == "I look."
    assert first == {"role": "tool", "tool_call_id": "c-1", "content": "7"}
    assert second == {"role": "tool", "tool_call_id": "c-2", "content": "Error: none left"}
    assert after == {"role": "user", "content": "And now?"}


def test_instructions_have_the_role_that_the_model_knows_also_in_the_middle() -> None:
    messages = (ChatMessage.user("u"), ChatMessage.system("x"), ChatMessage.user("v"))
    roles = {
        model: [message["role"] for message in written(*messages, model=model)]
        for model in ("gpt-5.2", "gpt-4.1")
    }
    assert roles["gpt-5.2"] == ["developer", "user", "developer", "user"]
    assert roles["gpt-4.1"] == ["system", "user", "system", "user"]


def test_instructions_in_the_middle_are_told_by_the_user_where_the_model_takes_no_others() -> None:
    messages = (ChatMessage.user("u"), ChatMessage.system("x"), ChatMessage.user("v"))
    call = call_of(GenerateRequest("s", messages))
    traits = replace(call.data.traits, system_messages=False)
    call = replace(call, data=replace(call.data, traits=traits))
    assert to_messages(call)[2] == {"role": "user", "content": "<system>\nx\n</system>"}


def test_an_answer_that_says_nothing_is_no_message() -> None:
    thought = ChatMessage(ChatRole.ASSISTANT, (Reasoning("hm"),))
    assert len(written(ChatMessage.user("u"), thought, ChatMessage.user("v"))) == 3


@pytest.mark.parametrize("call_id", ["x" * 41, "functions.gauge:0", "\u00e9"])
def test_ids_that_another_provider_gave_are_made_to_fit(call_id: str) -> None:
    called = ChatMessage(ChatRole.ASSISTANT, (ToolCall(call_id, "gauge", "{}"),))
    result = ChatMessage(ChatRole.USER, (ToolResult(call_id, "7"),))
    _, _, call, told = written(ChatMessage.user("u"), called, result)
    assert call["tool_calls"][0]["id"] == told["tool_call_id"]
    assert len(told["tool_call_id"]) <= 40
    assert told["tool_call_id"] != call_id


def test_deepseek_is_told_again_what_it_thought() -> None:
    _, _, called, *_ = written(ChatMessage.user("u"), CALLING, RESULTS, provider="deepseek", model="m")
    assert called["reasoning_content"] == "hm"


def test_nobody_else_is_told_what_deepseek_thought() -> None:
    for provider in ("openai", "generic", "azure"):
        assert "hm" not in str(written(ChatMessage.user("u"), CALLING, RESULTS, provider=provider))


def test_calls_that_another_model_made_are_given_a_thought_for_deepseek() -> None:
    foreign = replace(CALLING, parts=CALLING.parts[2:])
    _, _, called, *_ = written(ChatMessage.user("u"), foreign, RESULTS, provider="deepseek", model="m")
    assert called["reasoning_content"] == "Tools to call now: gauge, a.b"


def test_a_plain_answer_of_another_model_needs_no_thought() -> None:
    messages = (ChatMessage.user("u"), ChatMessage.assistant("a"), ChatMessage.user("v"))
    assert "reasoning_content" not in str(written(*messages, provider="deepseek", model="m"))


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-5.2"), ("openai", "gpt-6-sol"), ("deepseek", "m"), ("generic", "m")],
)
def test_what_was_written_of_a_history_stays_the_same_as_it_grows(provider: str, model: str) -> None:
    history = [
        ChatMessage.user("u"),
        CALLING,
        RESULTS,
        ChatMessage.assistant("a"),
        ChatMessage.system("x"),
        ChatMessage.user("v"),
    ]
    before: list[dict[str, Any]] = []
    for length in (1, 3, 6):
        now = written(*normalize_messages(history[:length]), provider=provider, model=model)
        assert now[: len(before)] == before
        before = now
