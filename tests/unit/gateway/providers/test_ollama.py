"""Conversion of a call to an Ollama request body.

Ollama's answers, read line by line.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from peripety.errors import InvalidArgumentError, NotFoundError, PeripetyError, UnavailableError
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.ollama import OllamaStream, OllamaWire, to_messages, to_ollama_body
from peripety.gateway.providers.provider import AnswerFinished, Delta, Endpoint
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
from peripety.gateway.types.response import (
    ReasoningDelta,
    SchemaMethod,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
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


FAILURES = ErrorMapper(Endpoint("ollama", "http://a"), "m", OllamaWire.vocabulary)


def line(done: str | None = None, counts: dict[str, int] | None = None, **message: Any) -> str:
    end = {"done": False} if done is None else {"done": True, "done_reason": done}
    said = {"role": "assistant", "content": "", **message}
    return json.dumps({"model": "m:latest", "message": said, **end, **(counts or {})})


def calling(*names: str) -> list[dict[str, Any]]:
    return [{"function": {"name": name, "arguments": {"a": "é"}}} for name in names]


def stream(**options: Any) -> OllamaStream:
    return OllamaStream(FAILURES, call_of(asking(**options), "m", "ollama"))


def read(*lines: str, into: OllamaStream | None = None) -> tuple[list[Delta], AnswerFinished]:
    answer = into or stream()
    deltas = [delta for each in lines for delta in answer.feed(each)]
    return deltas, answer.finish()


def failure(*lines: str) -> PeripetyError:
    with pytest.raises(PeripetyError) as caught:
        read(*lines)
    return caught.value


def test_texts_thoughts_and_counts_make_an_answer() -> None:
    counts = {"prompt_eval_count": 9, "eval_count": 4}
    deltas, end = read(line(thinking="r"), line(content="a"), line(content="b"), line("stop", counts))
    assert deltas == [ReasoningDelta("r"), TextDelta("a"), TextDelta("b")]
    own = ProviderState("ollama", b"r")
    assert end == AnswerFinished((Reasoning("r"), Text("ab"), own), StopReason.END, Usage(9, 4), "m:latest")


def test_what_the_model_thought_goes_back_to_it() -> None:
    _, end = read(line(thinking="r"), line(thinking="é"), line("stop", content="a"))
    said = to_messages([ChatMessage(ChatRole.ASSISTANT, end.parts)], system_messages=True)
    assert said == [{"role": "assistant", "content": "a", "thinking": "ré"}]


def test_calls_get_ids_and_end_an_answer_although_its_reason_says_stop() -> None:
    name = to_wire_name("näme")
    lines = [line(tool_calls=calling(name)), line(tool_calls=calling(name, "other")), line("stop")]
    tools = (Tool("näme", "", {"type": "object"}),)
    deltas, end = read(*lines, into=stream(tools=tools))
    calls = [part for part in end.parts if isinstance(part, ToolCall)]
    assert end.stop_reason is StopReason.TOOL_USE
    assert [(call.name, call.arguments) for call in calls] == [
        ("näme", '{"a":"é"}'),
        ("näme", '{"a":"é"}'),
        ("other", '{"a":"é"}'),
    ]
    assert len({call.call_id for call in calls}) == 3
    assert deltas[0] == ToolCallDelta(calls[0].call_id, '{"a":"é"}', "näme")
    assert read(*lines, into=stream(tools=tools))[1] == end


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", StopReason.END),
        ("length", StopReason.LENGTH),
        ("load", StopReason.OTHER),
        ("unload", StopReason.OTHER),
        ("", StopReason.OTHER),
    ],
)
def test_every_reason_for_an_end_means_something(reason: str, stop: StopReason) -> None:
    assert read(line(reason, content="a"))[1].stop_reason is stop


def test_an_answer_is_whole_only_with_its_last_line() -> None:
    lines = [line(content="a"), line(content="b"), line("stop")]
    for length in range(len(lines)):
        assert failure(*lines[:length]).code == "STREAM_TRUNCATED"
    answer = stream()
    read(*lines, into=answer)
    assert (answer.done, answer.complete) == (True, True)
    assert list(answer.feed(line(content="c"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        '{"message": 1}',
        '{"message": {"content": 1}}',
        '{"message": {"tool_calls": {}}}',
        '{"message": {"tool_calls": [{"function": {"name": "t", "arguments": "{}"}}]}}',
        '{"done": true, "done_reason": 1}',
    ],
)
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    assert failure(text).code == "STREAM_MALFORMED"


def test_an_error_in_place_of_the_next_line_is_that_error() -> None:
    error = failure(line(content="a"), '{"error": "out of memory"}')
    assert isinstance(error, UnavailableError)
    assert (error.code, "out of memory" in error.message) == ("PROVIDER_FAILED", True)


def test_a_model_that_was_not_pulled_says_how_to_get_it() -> None:
    error = FAILURES.from_response(404, {}, b'{"error": "model \'m\' not found, try pulling it first"}')
    assert isinstance(error, NotFoundError)
    assert "try pulling it first" in error.message


def test_a_key_is_sent_only_where_there_is_one() -> None:
    wire, call = OllamaWire(), call_of(asking(), "m", "ollama")
    assert wire.headers(call, None) == {}
    assert wire.headers(call, SecretStr("k")) == {"Authorization": "Bearer k"}
