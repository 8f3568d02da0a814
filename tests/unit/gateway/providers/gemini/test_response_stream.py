"""Gemini's streams, read event by event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import SecretStr

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.gemini.request_body import ThoughtSignature, to_contents
from peripety.gateway.providers.gemini.response_stream import GeminiStream, GeminiWire
from peripety.gateway.providers.provider import AnswerFinished, Delta, Endpoint
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.types.message import ChatMessage, ChatRole, Reasoning, Text, Tool, ToolCall
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

KEY = "AIza-canary-123"
MODEL = "gemini-3.5-flash"
CALL = call_of(asking(), MODEL, "gemini")
FAILURES = ErrorMapper(
    Endpoint("gemini", "http://a", SecretStr(KEY), key_variable="GEMINI_API_KEY"),
    MODEL,
    GeminiWire.vocabulary,
)
STOP: dict[str, Any] = {"finishReason": "STOP"}


def chunk(*parts: Any, usage: dict[str, int] | None = None, **candidate: Any) -> str:
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    counts = {} if usage is None else {"usageMetadata": usage}
    return json.dumps({"candidates": [{**content, "index": 0, **candidate}], **counts, "modelVersion": "v"})


def stream(**options: Any) -> GeminiStream:
    return GeminiStream(FAILURES, call_of(asking(**options), MODEL, "gemini"))


def read(*events: str, into: GeminiStream | None = None) -> tuple[list[Delta], AnswerFinished]:
    answer = into or stream()
    deltas = [delta for event in events for delta in answer.feed(event)]
    return deltas, answer.finish()


def failure(*events: str) -> PeripetyError:
    with pytest.raises(PeripetyError) as caught:
        read(*events)
    return caught.value


def test_texts_and_thoughts_become_parts_in_their_order() -> None:
    deltas, end = read(
        chunk({"text": "think", "thought": True}),
        chunk({"text": "a"}),
        chunk({"text": "b"}, finishReason="STOP"),
    )
    assert deltas == [ReasoningDelta("think"), TextDelta("a"), TextDelta("b")]
    assert end == AnswerFinished((Reasoning("think"), Text("ab")), StopReason.END, Usage(), "v")


def test_calls_end_an_answer_although_its_reason_says_stop() -> None:
    name = to_wire_name("näme")
    call = {"functionCall": {"id": "c", "name": name, "args": {"a": [1, "é"]}}}
    deltas, end = read(chunk(call, **STOP), into=stream(tools=(Tool("näme", "", {"type": "object"}),)))
    assert deltas == [ToolCallDelta("c", '{"a":[1,"é"]}', "näme")]
    assert (end.stop_reason, end.parts) == (StopReason.TOOL_USE, (ToolCall("c", "näme", '{"a":[1,"é"]}'),))


def test_calls_without_ids_get_the_same_ones_every_time() -> None:
    calls = chunk({"functionCall": {"name": "t"}}, {"functionCall": {"name": "t"}}, **STOP)
    first, second = read(calls)[1].parts
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.call_id != second.call_id
    assert read(calls)[1].parts == (first, second)


def test_signatures_come_back_with_the_parts_that_they_came_with() -> None:
    parts = [
        {"text": "a"},
        {"text": "bc", "thoughtSignature": "s1"},
        {"text": "d"},
        {"functionCall": {"id": "1", "name": "t", "args": {}}, "thoughtSignature": "s2"},
        {"functionCall": {"id": "2", "name": "t", "args": {}}},
        {"text": "", "thoughtSignature": "s3"},
    ]
    _, end = read(*(chunk(part) for part in parts), chunk(**STOP))
    said = ChatMessage(ChatRole.ASSISTANT, end.parts)
    again = GenerateRequest(None, (ChatMessage.user("u"), said))
    assert to_contents(call_of(again, MODEL, "gemini"))[1]["parts"] == parts


def test_a_signed_thought_is_not_said_again_and_its_signature_is() -> None:
    _, end = read(chunk({"text": "r", "thought": True, "thoughtSignature": "s"}, {"text": "a"}, **STOP))
    assert end.parts == (ThoughtSignature("s", 0).to_state(CALL), Reasoning("r"), Text("a"))


def test_counts_are_totals_and_the_last_one_holds() -> None:
    first = {"promptTokenCount": 90, "cachedContentTokenCount": 60, "candidatesTokenCount": 1}
    last = {"promptTokenCount": 90, "candidatesTokenCount": 7, "thoughtsTokenCount": 5}
    last["toolUsePromptTokenCount"] = 10
    _, end = read(chunk({"text": "a"}, usage=first), chunk(**STOP, usage=last))
    assert end.usage == Usage(100, 12, cache_read_tokens=60, reasoning_tokens=5)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", StopReason.END),
        ("MAX_TOKENS", StopReason.LENGTH),
        ("CONTINUATION", StopReason.LENGTH),
        ("SAFETY", StopReason.REFUSAL),
        ("RECITATION", StopReason.REFUSAL),
        ("LANGUAGE", StopReason.REFUSAL),
        ("BLOCKLIST", StopReason.REFUSAL),
        ("PROHIBITED_CONTENT", StopReason.REFUSAL),
        ("SPII", StopReason.REFUSAL),
        ("UNEXPECTED_TOOL_CALL", StopReason.OTHER),
        ("TOO_MANY_TOOL_CALLS", StopReason.OTHER),
        ("OTHER", StopReason.OTHER),
        ("WHAT_COMES_NEXT", StopReason.OTHER),
    ],
)
def test_every_reason_for_an_end_means_something(reason: str, stop: StopReason) -> None:
    assert read(chunk({"text": "a"}, finishReason=reason))[1].stop_reason is stop


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"])
def test_what_the_model_spoilt_may_be_asked_for_again(reason: str) -> None:
    error = failure(chunk(finishReason=reason, finishMessage="x"))
    assert isinstance(error, UnavailableError)
    assert (error.code, reason in error.message) == ("STREAM_MALFORMED", True)


def test_a_missing_signature_is_the_requests_fault() -> None:
    error = failure(chunk(finishReason="MISSING_THOUGHT_SIGNATURE", finishMessage="in part 1"))
    assert isinstance(error, InvalidArgumentError)
    assert "in part 1" in error.message


def test_a_prompt_that_is_blocked_is_a_refusal_without_an_answer() -> None:
    _, end = read(json.dumps({"promptFeedback": {"blockReason": "SAFETY"}}))
    assert (end.stop_reason, end.parts) == (StopReason.REFUSAL, ())


def test_a_stream_is_whole_only_with_the_reason_for_its_end() -> None:
    events = [chunk({"text": "a"}), chunk({"text": "b"}), chunk(**STOP)]
    for length in range(len(events)):
        assert failure(*events[:length]).code == "STREAM_TRUNCATED"
    answer = stream()
    assert [answer.complete for event in events if answer.feed(event) is not None] == [False, False, True]
    assert not answer.done


@pytest.mark.parametrize(
    "event",
    [
        "x",
        "[]",
        '{"candidates": 1}',
        '{"candidates": [1]}',
        '{"candidates": [{"content": {"parts": {}}}]}',
        '{"candidates": [{"content": {"parts": [{"text": 1}]}}]}',
        '{"candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "args": []}}]}}]}',
        '{"candidates": [{"finishReason": 1}]}',
        '{"usageMetadata": []}',
    ],
)
def test_what_cannot_be_read_is_an_error(event: str) -> None:
    assert failure(event).code == "STREAM_MALFORMED"


def test_unknown_parts_and_other_candidates_are_passed_over() -> None:
    other = json.dumps({"candidates": [{"index": 1, "content": {"parts": [{"text": "x"}]}, **STOP}]})
    assert read(other, chunk({"executableCode": {}}, {"text": "a"}, **STOP))[1].parts == (Text("a"),)


def test_an_error_inside_of_the_stream_is_that_error() -> None:
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "52s"}
    error = failure(json.dumps({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [retry]}}))
    assert isinstance(error, ResourceExhaustedError)
    assert (error.code, error.retry_after) == ("PROVIDER_RATE_LIMITED", 52.0)


def test_a_refused_key_is_one_although_the_status_says_otherwise() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    body = {"code": 400, "status": "INVALID_ARGUMENT", "message": f"no {KEY}", "details": [info]}
    error = FAILURES.from_response(400, {}, json.dumps({"error": body}).encode())
    assert isinstance(error, FailedPreconditionError)
    assert (error.code, "GEMINI_API_KEY" in error.message) == ("PROVIDER_REFUSED_KEY", True)
    assert KEY not in error.message


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (
            400,
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (429, "Your prepayment credits are depleted.", "PROVIDER_QUOTA_EXHAUSTED"),
        (429, "You exceeded your current quota.", "PROVIDER_RATE_LIMITED"),
        (503, "The model is overloaded.", "PROVIDER_FAILED"),
    ],
)
def test_messages_say_what_statuses_do_not(status: int, message: str, code: str) -> None:
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    assert FAILURES.from_response(status, {}, body).code == code


def test_the_call_of_the_answer_tool_is_the_text_of_the_answer() -> None:
    schema = ResponseSchema("x", {"type": "object"})
    call = call_of(asking(schema=schema), MODEL, "gemini")
    answer = GeminiStream(FAILURES, call, SchemaMethod.TOOL)
    part = {"functionCall": {"name": ANSWER_TOOL, "args": {"a": 1}}, "thoughtSignature": "s"}
    deltas, end = read(chunk(part, **STOP), into=answer)
    assert deltas == [TextDelta('{"a":1}')]
    assert end.stop_reason is StopReason.END
    assert [each for each in end.parts if isinstance(each, Text)] == [Text('{"a":1}')]


def test_the_key_is_in_a_header_and_nowhere_else() -> None:
    wire, call = GeminiWire(), call_of(asking(), "a/b?c", "gemini")
    assert wire.path(call) == "/v1beta/models/a%2Fb%3Fc:streamGenerateContent?alt=sse"
    assert wire.headers(call, SecretStr(KEY)) == {"x-goog-api-key": KEY}
    assert wire.headers(call, None) == {}


def test_tokens_are_counted_for_the_whole_request() -> None:
    counting = GeminiWire().token_count_request(call_of(asking(), MODEL, "gemini"))
    assert counting.path == f"/v1beta/models/{MODEL}:countTokens"
    asked = counting.document["generateContentRequest"]
    assert asked["model"] == f"models/{MODEL}"
    assert asked["contents"] == [{"role": "user", "parts": [{"text": "u"}]}]
    assert counting.field == "totalTokens"
