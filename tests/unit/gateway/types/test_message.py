from __future__ import annotations

import pytest

from peripety.gateway.types.message import ChatMessage, ChatRole, ProviderState, Reasoning, Text, ToolCall


@pytest.mark.parametrize("provider", ["anthropic", "openai", "deepseek", "ollama", "gemini", "google"])
def test_every_role_has_a_name_at_every_provider(provider: str) -> None:
    model = "model" if provider in {"gemini", "google"} else "assistant"
    assert [role.to_provider_string(provider) for role in ChatRole] == ["system", "user", model]


def test_a_message_tells_its_text_and_its_calls_apart_from_all_else() -> None:
    call = ToolCall("c", "t", "{}")
    parts = (Reasoning("r"), Text("a"), call, ProviderState("p", b"x"), Text("b"))
    message = ChatMessage(ChatRole.ASSISTANT, parts)
    assert (message.text, message.tool_calls) == ("ab", (call,))
    assert ChatMessage.assistant("").parts == ()


def test_what_only_a_provider_may_read_is_not_shown() -> None:
    assert "secret" not in repr(ProviderState("p", b"secret"))
