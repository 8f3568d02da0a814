"""Reading the events of a response."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError, PeripetyError, ResourceExhaustedError, UnavailableError
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.openai_responses.request_body import unwrap_item
from peripety.gateway.providers.openai_responses.response_stream import ResponseStream, ResponsesWire
from peripety.gateway.providers.provider import Endpoint
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.types.message import ProviderState, Reasoning, Text, Tool, ToolCall
from peripety.gateway.types.response import (
    ReasoningDelta,
    SchemaMethod,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from support.gateway.requests import asking, call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.provider import AnswerFinished, Delta


CALL = call_of(asking(tools=(Tool("gauge", "Reads.", {"type": "object"}),)), "gpt-6-sol", "openai-responses")
USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {
        "cached_tokens": 2,
        "cache_write_tokens": 5,
        "cache_write_tokens_details": {"ttl_30m_tokens": 1, "ttl_12h_tokens": 4},
    },
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}


def stream_of(method: SchemaMethod | None = None) -> ResponseStream:
    failures = ErrorMapper(Endpoint("openai-responses", "http://a/v1"), "m", ResponsesWire.vocabulary)
    return ResponseStream(failures, CALL, method)


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **members}


def text(delta: str, index: int = 0, part: int = 0) -> dict[str, Any]:
    return event("output_text.delta", output_index=index, content_index=part, delta=delta)


def arguments(delta: str, index: int) -> dict[str, Any]:
    return event("function_call_arguments.delta", output_index=index, delta=delta)


def opened(index: int, call_id: str = "c-1", name: str = "gauge") -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": ""}
    return event("output_item.added", output_index=index, item=item)


def ended(**members: Any) -> dict[str, Any]:
    return event("completed", response={"model": "m-1", "status": "completed", "usage": USAGE, **members})


def incomplete(reason: str) -> dict[str, Any]:
    return event("incomplete", response={"incomplete_details": {"reason": reason}, "usage": USAGE})


def fed(stream: ResponseStream, *events: dict[str, Any]) -> list[Delta]:
    numbered = [{**each, "sequence_number": number} for number, each in enumerate(events)]
    return [delta for each in numbered for delta in stream.feed(json.dumps(each))]


def read(*events: dict[str, Any], method: SchemaMethod | None = None) -> tuple[list[Delta], AnswerFinished]:
    stream = stream_of(method)
    deltas = fed(stream, event("created", response={"model": "m-1"}), *events)
    return deltas, stream.finish()


def test_a_whole_answer_is_read_with_its_end_and_its_usage() -> None:
    done = event("output_text.done", output_index=0, content_index=0, text="ab")
    deltas, end = read(text("a"), text("b"), done, ended())
    assert deltas == [TextDelta("a"), TextDelta("b")]
    assert (end.parts, end.stop_reason, end.model) == ((Text("ab"),), StopReason.END, "m-1")
    assert end.usage == Usage(9, 7, 2, 5, 3, 4)


def test_a_text_that_comes_without_pieces_is_read_at_its_end() -> None:
    done = event("output_text.done", output_index=0, content_index=0, text="ab")
    call = event("function_call_arguments.done", output_index=1, arguments='{"a":1}')
    deltas, end = read(done, opened(1), call, ended())
    assert deltas == [TextDelta("ab"), ToolCallDelta("c-1", '{"a":1}', "gauge")]
    assert end.parts == (Text("ab"), ToolCall("c-1", "gauge", '{"a":1}'))


def test_calls_that_are_written_at_once_are_told_apart() -> None:
    deltas, end = read(
        opened(0),
        opened(1, "c-2"),
        arguments('{"a"', 0),
        arguments("{}", 1),
        arguments(":1}", 0),
        event("function_call_arguments.done", output_index=0, arguments='{"a":1}'),
        ended(),
    )
    assert end.parts == (ToolCall("c-1", "gauge", '{"a":1}'), ToolCall("c-2", "gauge", "{}"))
    assert end.stop_reason is StopReason.TOOL_USE
    assert [delta.call_id for delta in deltas if isinstance(delta, ToolCallDelta)] == ["c-1", "c-2", "c-1"]


def test_thoughts_are_kept_encrypted_in_their_place_and_their_summary_is_shown() -> None:
    summary = "reasoning_summary"
    deltas, end = read(
        event(f"{summary}_part.added", output_index=0, summary_index=0),
        event(f"{summary}_text.delta", output_index=0, summary_index=0, delta="h"),
        event(f"{summary}_part.added", output_index=0, summary_index=1),
        event(f"{summary}_text.delta", output_index=0, summary_index=1, delta="m"),
        event("output_item.done", output_index=0, item=ITEM),
        text("a", 1),
        ended(),
    )
    assert [type(part) for part in end.parts] == [Reasoning, ProviderState, Text]
    assert end.parts[0] == Reasoning("h\n\nm")
    assert isinstance(end.parts[1], ProviderState)
    assert unwrap_item(CALL, end.parts[1]) == ITEM
    assert deltas[0] == ReasoningDelta("h")


def test_the_phases_of_two_texts_keep_them_apart() -> None:
    begun = [
        event("output_item.added", output_index=index, item={"type": "message", "phase": phase})
        for index, phase in enumerate(("commentary", "final_answer"))
    ]
    _, end = read(begun[0], text("a"), begun[1], text("b", 1), ended())
    first, *_, second = (part for part in end.parts if isinstance(part, ProviderState))
    assert [unwrap_item(CALL, state)["phase"] for state in (first, second)] == [
        "commentary",
        "final_answer",
    ]
    assert [part.text for part in end.parts if isinstance(part, Text)] == ["a", "b"]


def test_thoughts_of_an_open_model_are_shown() -> None:
    _, end = read(event("reasoning_text.delta", output_index=0, content_index=0, delta="hm"), ended())
    assert end.parts == (Reasoning("hm"),)


def test_a_refusal_is_told_in_its_words() -> None:
    refusal = [
        event("refusal.delta", output_index=0, content_index=0, delta=word) for word in ("I ", "can't")
    ]
    done = event("refusal.done", output_index=0, content_index=0, refusal="I can't")
    _, end = read(*refusal, done, ended())
    assert (end.parts, end.stop_reason) == ((Text("I can't"),), StopReason.REFUSAL)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", StopReason.LENGTH),
        ("content_filter", StopReason.REFUSAL),
        ("steered", StopReason.OTHER),
    ],
)
def test_an_incomplete_answer_says_why(reason: str, expected: StopReason) -> None:
    _, end = read(text("a"), incomplete(reason))
    assert (end.stop_reason, end.usage.output_tokens) == (expected, 7)


def test_a_last_call_that_the_limit_cut_off_is_left_out() -> None:
    _, end = read(text("a"), opened(1), arguments('{"a', 1), incomplete("max_output_tokens"))
    assert (end.parts, end.stop_reason) == ((Text("a"),), StopReason.LENGTH)


def test_the_answer_of_the_answer_tool_is_text() -> None:
    done = event("function_call_arguments.done", output_index=0, arguments='{"a": 1}')
    called = (opened(0, name=ANSWER_TOOL), arguments('{"a"', 0), arguments(": 1}", 0), done, ended())
    deltas, end = read(*called, method=SchemaMethod.TOOL)
    assert deltas == [TextDelta('{"a"'), TextDelta(": 1}")]
    assert (end.parts, end.stop_reason) == ((Text('{"a": 1}'),), StopReason.END)


def test_a_stream_that_ends_after_any_event_is_a_cut_until_its_end_is_known() -> None:
    whole = [event("created"), text("a"), opened(1), arguments("{}", 1), ended()]
    for length in range(len(whole)):
        stream = stream_of()
        fed(stream, *whole[:length])
        assert not stream.complete
        with pytest.raises(UnavailableError) as caught:
            stream.finish()
        assert caught.value.code == "STREAM_TRUNCATED"
    stream = stream_of()
    fed(stream, *whole, text("what follows the end"))
    assert stream.finish().parts[0] == Text("a")


@pytest.mark.parametrize(
    "events",
    [
        [text("a"), event("output_text.done", output_index=0, content_index=0, text="ab")],
        [opened(0), arguments("{", 0), event("function_call_arguments.done", output_index=0, arguments="{}")],
        [arguments("{}", 0)],
        [event("output_text.delta", output_index="0", delta="a")],
        [event("output_text.delta", output_index=0, delta=7)],
        [event("output_item.added", output_index=0, item=7)],
        [{"type": 7}],
    ],
)
def test_what_does_not_fit_together_is_an_error(events: list[dict[str, Any]]) -> None:
    with pytest.raises(UnavailableError) as caught:
        fed(stream_of(), *events)
    assert caught.value.code == "STREAM_MALFORMED"


@pytest.mark.parametrize("number", [6, 7])
def test_events_that_come_twice_or_out_of_order_are_an_error(number: int) -> None:
    stream = stream_of()
    stream.feed(json.dumps({**text("a"), "sequence_number": 7}))
    with pytest.raises(UnavailableError, match="order"):
        stream.feed(json.dumps({**text("b"), "sequence_number": number}))


def test_events_of_unknown_types_are_passed_over() -> None:
    deltas, _ = read(event("queued"), {"type": "keepalive"}, event("web_search_call.searching"), ended())
    assert deltas == []


@pytest.mark.parametrize(
    ("failed", "kind"),
    [
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "x"}}, ResourceExhaustedError),
        ({"type": "error", "code": "insufficient_quota", "message": "x"}, ResourceExhaustedError),
        ({"type": "error", "code": "context_length_exceeded", "message": "x"}, InvalidArgumentError),
        ({"type": "error", "code": None, "message": "x"}, UnavailableError),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}},
            UnavailableError,
        ),
        ({"type": "response.failed", "response": {}}, UnavailableError),
    ],
)
def test_a_failure_is_raised_for_what_it_is(failed: dict[str, Any], kind: type[PeripetyError]) -> None:
    with pytest.raises(kind):
        fed(stream_of(), text("a"), failed)
