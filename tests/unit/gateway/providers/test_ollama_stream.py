"""Ollama's answers, read line by line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import SecretStr

from peripety.errors import NotFoundError, PeripetyError, UnavailableError
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.ollama import OllamaStream, OllamaWire, to_messages
from peripety.gateway.providers.provider import AnswerFinished, Delta, Endpoint
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
)
from peripety.gateway.types.response import ReasoningDelta, StopReason, TextDelta, ToolCallDelta, Usage
from support.gateway.requests import asking, call_of

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
