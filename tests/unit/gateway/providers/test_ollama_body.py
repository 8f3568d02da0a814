"""What a call becomes as a body for Ollama."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.providers.ollama import to_ollama_body
from peripety.gateway.token_estimate import estimate_prompt_tokens
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import SchemaMethod
from support.gateway.requests import asking, call_of

TOOL = Tool("look", "Looks.", {"type": "object"})
ANSWER = ResponseSchema("answer", {"type": "object", "properties": {"a": {"type": "integer"}}})
USUAL_ANSWER = 8192


def body(request: GenerateRequest) -> Any:
    return to_ollama_body(call_of(request, "m", "ollama")).document


def messages(*said: ChatMessage) -> list[Any]:
    found: list[Any] = body(GenerateRequest(None, said))["messages"]
    return found


def answer(*parts: Any) -> ChatMessage:
    return ChatMessage(ChatRole.ASSISTANT, parts)


def test_what_is_left_open_is_left_out_but_for_the_lengths() -> None:
    assert body(asking()) == {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "stream": True,
        "options": {"num_ctx": 16384, "num_predict": USUAL_ANSWER},
    }


def test_options_go_by_their_names_there() -> None:
    options = asking(max_output_tokens=5, temperature=0.5, seed=7, stop_sequences=("x",))
    assert body(options)["options"] == {
        "num_ctx": 4096,
        "num_predict": 5,
        "temperature": 0.5,
        "seed": 7,
        "stop": ["x"],
    }


@pytest.mark.parametrize("length", [10, 12_000, 30_000, 200_000])
def test_the_context_holds_prompt_and_answer_and_grows_by_doubling(length: int) -> None:
    request = asking("u" * length, max_output_tokens=100)
    size = body(request)["options"]["num_ctx"]
    assert size >= estimate_prompt_tokens(request) + 100
    assert size.bit_count() == 1
    assert size == 4096 or size < 2 * (estimate_prompt_tokens(request) + 100)


def test_the_context_is_not_larger_than_what_the_model_has() -> None:
    call = call_of(asking("u" * 90_000), "m", "ollama")
    document = to_ollama_body(replace(call, data=replace(call.data, context_tokens=10_000))).document
    assert document["options"]["num_ctx"] == 10_000


def test_results_are_told_apart_by_their_order_and_their_tools() -> None:
    said = messages(
        ChatMessage.user("a"),
        answer(Text("b"), ToolCall("1", "näme", '{"x": 1}'), ToolCall("2", "look", "{}")),
        ChatMessage(ChatRole.USER, (ToolResult("2", "w", is_error=True), ToolResult("1", "r"), Text("t"))),
    )
    first, second = said[1].pop("tool_calls")
    name = first["function"]["name"]
    assert first == {"function": {"name": name, "arguments": {"x": 1}}}
    assert second == {"function": {"name": "look", "arguments": {}}}
    assert said[1] == {"role": "assistant", "content": "b"}
    assert said[2:] == [
        {"role": "tool", "tool_name": name, "content": "r"},
        {"role": "tool", "tool_name": "look", "content": "Error: w"},
        {"role": "user", "content": "t"},
    ]


def test_a_model_reads_its_own_thoughts_again_and_nobody_elses() -> None:
    own = answer(
        Reasoning("r"),
        Text("b"),
        ProviderState("ollama", b"own"),
        ProviderState("other", b"theirs"),
    )
    nothing = answer(Reasoning("r"), ProviderState("other", b"theirs"))
    said = messages(
        ChatMessage.user("a"),
        own,
        ChatMessage.user("c"),
        nothing,
        ChatMessage.system("d"),
        ChatMessage.user("e"),
    )
    assert said == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "thinking": "own"},
        {"role": "user", "content": "c"},
        {"role": "system", "content": "d"},
        {"role": "user", "content": "e"},
    ]


def test_a_model_that_takes_no_instructions_between_messages_hears_them_from_the_user() -> None:
    request = GenerateRequest(None, (ChatMessage.user("a"), ChatMessage.system("b"), ChatMessage.user("c")))
    call = call_of(request, "m", "ollama")
    data = replace(call.data, traits=replace(call.data.traits, system_messages=False))
    said = to_ollama_body(replace(call, data=data)).document["messages"][1]
    assert said == {"role": "user", "content": "<system>\nb\n</system>"}


def test_tools_are_functions_and_are_left_out_where_none_may_be_called() -> None:
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    assert body(asking(tools=(TOOL,)))["tools"] == [{"type": "function", "function": function}]
    none = ToolChoice(ToolChoiceMode.NONE, disable_parallel=True)
    assert "tools" not in body(asking(tools=(TOOL,), tool_choice=none))


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        (ToolChoice(ToolChoiceMode.ANY), "tool_choice.mode"),
        (ToolChoice(ToolChoiceMode.NAMED, "look"), "tool_choice.mode"),
        (ToolChoice(disable_parallel=True), "tool_choice.disable_parallel"),
    ],
)
def test_what_it_cannot_be_told_is_refused_with_field_and_model(choice: ToolChoice, field: str) -> None:
    with pytest.raises(InvalidArgumentError, match="ollama/m") as caught:
        body(asking(tools=(TOOL,), tool_choice=choice))
    assert [violation.field for violation in caught.value.violations] == [field]


def test_a_schema_is_the_format() -> None:
    written = to_ollama_body(call_of(asking(schema=ANSWER), "m", "ollama"))
    assert written.document["format"] == ANSWER.document
    assert written.schema_report is not None
    assert written.schema_report.method is SchemaMethod.NATIVE


def test_beside_tools_the_schema_is_told_since_a_format_would_keep_them_from_being_called() -> None:
    written = to_ollama_body(call_of(asking(schema=ANSWER, tools=(TOOL,)), "m", "ollama"))
    assert "format" not in written.document
    assert written.document["messages"][-1]["content"].startswith("u\n\n")
    assert "JSON Schema" in written.document["messages"][-1]["content"]
    assert written.schema_report is not None
    assert written.schema_report.method is SchemaMethod.EXTRACTION
