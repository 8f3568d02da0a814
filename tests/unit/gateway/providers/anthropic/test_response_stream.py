"""Anthropic's event streams, decoded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError, PeripetyError, ResourceExhaustedError, UnavailableError
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.providers.anthropic.response_stream import MessageStream, MessagesWire
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.history_compat import wrap_state
from peripety.gateway.providers.provider import Endpoint
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.types.message import ChatMessage, ChatRole, Reasoning, Text, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import GenerateRequest
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
    from collections.abc import Iterable

    from peripety.gateway.providers.provider import AnswerFinished, Delta


Event = dict[str, Any]
ODD = "say it!"
CALL = call_of(asking(tools=(Tool(ODD, "", {"type": "object"}),)), "m", "anthropic")
FAILURES = ErrorMapper(Endpoint("anthropic", "http://a"), "m", MessagesWire.vocabulary)
PING = {"type": "ping"}
STOP = {"type": "message_stop"}


def start(**usage: Any) -> Event:
    return {"type": "message_start", "message": {"model": "m-1", "content": [], "usage": usage}}


def block(index: int, begun: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(*pieces: str, index: int = 0) -> list[Event]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces))


def tool_use(*pieces: str, name: str = "look", index: int = 0) -> list[Event]:
    begun = {"type": "tool_use", "id": f"c{index}", "name": name, "input": {}}
    return block(index, begun, *({"type": "input_json_delta", "partial_json": p} for p in pieces))


def end(reason: str = "end_turn", **usage: Any) -> list[Event]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, STOP]


def read(events: Iterable[Event], method: SchemaMethod | None = None) -> tuple[list[Delta], AnswerFinished]:
    stream = MessageStream(FAILURES, CALL, method)
    deltas = [delta for event in events for delta in stream.feed(json.dumps(event))]
    return deltas, stream.finish()


def test_text_arrives_in_pieces_and_is_whole_in_the_end() -> None:
    deltas, finished = read([start(), PING, *text("a", "", "b"), {"type": "news"}, *end()])
    assert deltas == [TextDelta("a"), TextDelta("b")]
    assert (finished.parts, finished.stop_reason, finished.model) == ((Text("ab"),), StopReason.END, "m-1")


def test_parallel_calls_keep_their_arguments_apart() -> None:
    events = [
        start(),
        *tool_use("", '{"a": ', "1}"),
        *tool_use(name=to_wire_name(ODD), index=1),
        *end("tool_use"),
    ]
    deltas, finished = read(events)
    assert deltas == [
        ToolCallDelta("c0", "", "look"),
        ToolCallDelta("c0", '{"a": '),
        ToolCallDelta("c0", "1}"),
        ToolCallDelta("c1", "", ODD),
    ]
    assert finished.parts == (ToolCall("c0", "look", '{"a": 1}'), ToolCall("c1", ODD, "{}"))
    assert finished.stop_reason is StopReason.TOOL_USE


def test_thoughts_are_told_and_kept_as_they_came() -> None:
    redacted = {"type": "redacted_thinking", "data": "x"}
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    pieces = [
        {"type": "thinking_delta", "thinking": "h"},
        {"type": "thinking_delta", "thinking": "m"},
        {"type": "signature_delta", "signature": "sig"},
    ]
    deltas, finished = read(
        [start(), *block(0, thinking, *pieces), *block(1, redacted), *text("a", index=2), *end()],
    )
    assert deltas == [ReasoningDelta("h"), ReasoningDelta("m"), TextDelta("a")]
    assert finished.parts == (
        Reasoning("hm"),
        wrap_state(CALL, {"type": "thinking", "thinking": "hm", "signature": "sig"}),
        wrap_state(CALL, redacted),
        Text("a"),
    )


def test_a_thought_that_was_cut_off_is_not_kept() -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    events = [start(), *block(0, thinking, {"type": "thinking_delta", "thinking": "h"}), *end("max_tokens")]
    assert read(events)[1].parts == (Reasoning("h"),)


def test_blocks_that_are_not_known_are_passed_over() -> None:
    other = block(
        0,
        {"type": "server_tool_use", "id": "s"},
        {"type": "input_json_delta", "partial_json": "{"},
    )
    cited = block(
        1,
        {"type": "text", "text": "a"},
        {"type": "citations_delta"},
        {"type": "text_delta", "text": "b"},
    )
    deltas, finished = read([start(), *other, *cited, *end("pause_turn")])
    assert deltas == [TextDelta("a"), TextDelta("b")]
    assert finished.stop_reason is StopReason.OTHER


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("tool_use", StopReason.OTHER),
        ("refusal", StopReason.REFUSAL),
        ("pause_turn", StopReason.OTHER),
        ("compaction", StopReason.OTHER),
    ],
)
def test_every_reason_to_stop_has_its_meaning(told: str, reason: StopReason) -> None:
    assert read([start(), *text("a"), *end(told)])[1].stop_reason is reason


@pytest.mark.parametrize(("said", "told"), [([], "why"), (text("a"), "a")])
def test_why_the_model_declined_is_its_answer_when_it_said_nothing(said: list[Event], told: str) -> None:
    details = {"type": "refusal", "category": None, "explanation": "why"}
    declined = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    deltas, finished = read([start(), *said, declined, STOP])
    assert (deltas, finished.parts) == ([TextDelta(told)], (Text(told),))


def test_the_arguments_of_the_answer_tool_are_the_answer() -> None:
    events = [start(), *tool_use('{"a": ', "1}", name=ANSWER_TOOL), *end("tool_use")]
    deltas, finished = read(events, SchemaMethod.TOOL)
    assert deltas == [TextDelta('{"a": '), TextDelta("1}")]
    assert (finished.parts, finished.stop_reason) == ((Text('{"a": 1}'),), StopReason.END)


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_a_last_call_that_was_cut_off_on_purpose_is_left_out(reason: str) -> None:
    whole, cut = tool_use("{}"), tool_use('{"a', index=1)
    assert read([start(), *whole, *cut, *end(reason)])[1].parts == (ToolCall("c0", "look", "{}"),)
    with pytest.raises(UnavailableError) as caught:
        read([start(), *whole, *cut, *end("tool_use")])
    assert caught.value.code == "STREAM_MALFORMED"


# ---- usage


def test_later_figures_replace_earlier_ones_and_the_input_is_all_that_was_read() -> None:
    begun = start(
        input_tokens=10,
        cache_creation_input_tokens=20,
        cache_read_input_tokens=30,
        cache_creation={"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15},
        output_tokens=1,
    )
    later: dict[str, Any] = {"output_tokens": 9, "cache_read_input_tokens": 31, "input_tokens": None}
    ended = end("end_turn", **later, output_tokens_details={"thinking_tokens": 4})
    assert read([begun, *text("a"), *ended])[1].usage == Usage(
        input_tokens=61,
        output_tokens=9,
        cache_read_tokens=31,
        cache_write_tokens=20,
        reasoning_tokens=4,
        long_cache_write_tokens=15,
    )


def test_an_answer_without_figures_is_an_answer() -> None:
    assert read([start(), *text("a"), *end()])[1].usage == Usage()


# ---- faults

WHOLE = [start(input_tokens=1), *text("a", "b"), *tool_use("{}", index=1), *end("tool_use")]


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_stream_is_whole_from_its_stop_reason_on_and_cut_off_before(length: int) -> None:
    stream = MessageStream(FAILURES, CALL, None)
    for event in WHOLE[:length]:
        stream.feed(json.dumps(event))
    assert not stream.done
    if stream.complete:
        assert length == len(WHOLE) - 1
        assert stream.finish().parts == (Text("ab"), ToolCall("c1", "look", "{}"))
    else:
        with pytest.raises(UnavailableError) as caught:
            stream.finish()
        assert caught.value.code == "STREAM_TRUNCATED"


@pytest.mark.parametrize("missing", [0, 1, 4, 5, 7, 8])
def test_a_missing_event_is_noticed_unless_it_is_a_piece_of_something(missing: int) -> None:
    with pytest.raises(UnavailableError) as caught:
        read([event for place, event in enumerate(WHOLE) if place != missing])
    assert caught.value.code in {"STREAM_MALFORMED", "STREAM_TRUNCATED"}


@pytest.mark.parametrize(
    "events",
    [
        [[]],
        [{"type": 1}],
        [start(), start()],
        [*end()],
        [start(), STOP],
        [start(), *text("a", index=1)],
        [start(), *text("a")[:2], *text("b", index=1)],
        [start(), *text("a")[:2], *end()],
        [start(), *text("a"), text("b")[1]],
        [start(), *text("a"), *end()[:1], *text("b", index=1)],
        [start(), *block(0, {"type": "text"}, {"type": "input_json_delta", "partial_json": "{"})],
        [start(), *block(0, {"type": "thinking"}, {"type": "text_delta", "text": "a"})],
        [start(), *block(0, {"type": "text"}, {"type": "text_delta", "text": 1})],
        [start(), *block(0, {"type": "tool_use", "id": "c"})],
    ],
)
def test_what_is_no_answer_is_refused(events: list[Any]) -> None:
    with pytest.raises(UnavailableError) as caught:
        read(events)
    assert caught.value.code == "STREAM_MALFORMED"


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ({"type": "overloaded_error", "message": "x"}, UnavailableError, "PROVIDER_FAILED"),
        ({"type": "api_error", "message": "x"}, UnavailableError, "PROVIDER_FAILED"),
        ({"type": "rate_limit_error", "message": "x"}, ResourceExhaustedError, "PROVIDER_RATE_LIMITED"),
        ({"type": "billing_error", "message": "x"}, ResourceExhaustedError, "PROVIDER_QUOTA_EXHAUSTED"),
        (
            {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}},
            ResourceExhaustedError,
            "PROVIDER_QUOTA_EXHAUSTED",
        ),
        (
            {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
            InvalidArgumentError,
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (
            {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 9",
            },
            InvalidArgumentError,
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        ({"type": "request_too_large"}, InvalidArgumentError, "PROVIDER_REFUSED_REQUEST"),
    ],
)
def test_an_error_in_the_stream_says_what_it_would_have_said_before_it(
    error: Event,
    kind: type[PeripetyError],
    code: str,
) -> None:
    with pytest.raises(PeripetyError) as caught:
        read([start(), *text("a"), {"type": "error", "error": error}])
    assert (type(caught.value), caught.value.code) == (kind, code)


def test_arguments_that_come_with_the_beginning_of_a_call_are_its_arguments() -> None:
    begun = {"type": "tool_use", "id": "c0", "name": "look", "input": {"at": "é"}}
    deltas, whole = read([start(), *block(0, begun), *end("tool_use")])
    assert deltas == [ToolCallDelta("c0", '{"at": "é"}', "look")]
    assert whole.parts == (ToolCall("c0", "look", '{"at": "é"}'),)


def test_an_id_that_an_earlier_call_has_is_replaced() -> None:
    earlier = ChatMessage(ChatRole.ASSISTANT, (ToolCall("c0", "look", "{}"),))
    result = ChatMessage(ChatRole.USER, (ToolResult("c0", "r"),))
    asked = GenerateRequest(None, (ChatMessage.user("u"), earlier, result))
    stream = MessageStream(FAILURES, call_of(asked, "m", "anthropic"), None)
    for each in (start(), *tool_use("{}"), *end("tool_use")):
        stream.feed(json.dumps(each))
    assert [part.call_id for part in stream.finish().parts if isinstance(part, ToolCall)] == ["call_3_0"]
