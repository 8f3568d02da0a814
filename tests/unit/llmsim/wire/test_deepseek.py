from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    BilledUsage,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    RetryHint,
    SimReply,
    SimRequest,
    SimStopReason,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.deepseek import DeepSeekWire
from support.llmsim.simulator import NOW, FakeService, call, reply

WIRE = DeepSeekWire()
SERVICE = FakeService()
USER = {"role": "user", "content": "Hello"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
ANSWER = reply(
    ReasoningPart(("Let me ", "think."), "c2ln"),
    TextPart(("Hel", "lo")),
    ToolUsePart("a" * 24, "weather", ("{}",)),
    model="deepseek-flash",
    stop=SimStopReason.TOOL_USE,
    usage=BilledUsage(fresh=3, read=20, output=12, reasoning=4),
)
OFF = {"thinking": {"type": "disabled"}}


def called(**members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [CALL], **members}


def read(*messages: Any, **members: Any) -> SimRequest:
    body = {"model": "deepseek-flash", "messages": messages or [USER], **members}
    return WIRE.parse_request(call(WIRE, body), SERVICE)


def refused(*messages: Any, **members: Any) -> str:
    with pytest.raises(ApiError) as raised:
        read(*messages, **members)
    answer = WIRE.error(raised.value, "0" * 24, NOW)
    assert answer.status == 400
    error = json.loads(answer.body)["error"]
    assert (error["type"], error["param"], error["code"]) == (
        "invalid_request_error",
        None,
        "invalid_request_error",
    )
    message: str = error["message"]
    return message


def deltas(answer: SimReply, **members: Any) -> list[dict[str, Any]]:
    frames = WIRE.frames(read(stream=True, **members), answer)
    chunks = [json.loads(frame.data.removeprefix(b"data: ")) for frame in frames[1:-1]]
    return [chunk["choices"][0]["delta"] for chunk in chunks]


# ---- thoughts


def test_models_think_unless_they_are_told_not_to() -> None:
    assert read().reasoning
    assert read(thinking={"type": "enabled"}).reasoning
    assert not read(**OFF).reasoning


def test_thoughts_that_led_to_calls_have_to_come_back() -> None:
    message = "The `reasoning_content` in the thinking mode must be passed back to the API."
    assert refused(USER, called(), RESULT) == message
    assert read(USER, called(reasoning_content="hm"), RESULT).messages
    assert read(USER, called(reasoning_content=""), RESULT).messages
    assert read(USER, called(), RESULT, **OFF).messages


def test_thoughts_of_other_answers_are_not_read_again() -> None:
    plain = {"role": "assistant", "content": "Hi"}
    assert read(USER, plain, USER).prompt == read(USER, {**plain, "reasoning_content": "hm"}, USER).prompt
    thought = read(USER, called(reasoning_content="hm"), RESULT).prompt
    assert thought.tokens > read(USER, called(reasoning_content=""), RESULT).prompt.tokens


def test_thoughts_stand_beside_what_is_said() -> None:
    answer = WIRE.document(read(), ANSWER)
    choice = answer["choices"][0]
    assert choice["message"] == {
        "role": "assistant",
        "content": "Hello",
        "reasoning_content": "Let me think.",
        "tool_calls": [
            {
                "index": 0,
                "id": "call_" + "a" * 24,
                "type": "function",
                "function": {"name": "weather", "arguments": "{}"},
            },
        ],
    }
    assert choice["finish_reason"] == "tool_calls"


def test_thoughts_are_streamed_before_what_is_said() -> None:
    assert deltas(ANSWER)[:-3] == [
        {"role": "assistant", "content": None, "reasoning_content": ""},
        {"content": None, "reasoning_content": "Let me "},
        {"content": None, "reasoning_content": "think."},
        {"content": "Hel", "reasoning_content": None},
        {"content": "lo", "reasoning_content": None},
    ]


def test_answers_without_thoughts_do_not_mention_them() -> None:
    answer = reply(TextPart(("Hi",)))
    assert WIRE.document(read(**OFF), answer)["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Hi",
    }
    assert deltas(answer, **OFF) == [{"role": "assistant", "content": ""}, {"content": "Hi"}, {}]


def test_a_refusal_is_prose() -> None:
    answer = reply(RefusalPart(("No.",)), stop=SimStopReason.REFUSAL)
    assert WIRE.document(read(**OFF), answer)["choices"][0]["message"]["content"] == "No."
    assert deltas(answer, **OFF)[1] == {"content": "No."}


# ---- what else differs


def test_usage_tells_hits_and_misses() -> None:
    assert WIRE.document(read(), ANSWER)["usage"] == {
        "prompt_tokens": 23,
        "completion_tokens": 12,
        "total_tokens": 35,
        "prompt_tokens_details": {"cached_tokens": 20},
        "completion_tokens_details": {"reasoning_tokens": 4},
        "prompt_cache_hit_tokens": 20,
        "prompt_cache_miss_tokens": 3,
    }


def test_ids_are_uuids_and_follow_from_the_answer() -> None:
    first, second = (WIRE.document(read(), ANSWER) for _ in range(2))
    assert first == second
    assert len(first["id"].split("-")) == 5


def test_a_stream_begins_with_a_comment() -> None:
    frame = WIRE.frames(read(stream=True), ANSWER)[0]
    assert (frame.data, frame.tag) == (b": keep-alive\n\n", FrameTag.NOISE)


def test_the_user_isolates_the_cache() -> None:
    assert read(user_id="u").prompt.controls == {"user_id": "u"}
    assert read().prompt.controls == {}


def test_members_that_are_not_known_are_ignored() -> None:
    assert read(frequency=3, store=True) == read()


def test_sampling_is_ignored_only_while_thinking() -> None:
    assert read(temperature=7) == read()
    assert (
        refused(temperature=7, **OFF) == "Invalid temperature value, the valid range of temperature is [0, 2]"
    )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"messages": [{"role": "developer", "content": "x"}]},
            (
                "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant "
                "`developer`, expected one of `system`, `user`, `assistant`, `tool`"
            ),
        ),
        (
            {"messages": [{"role": "user"}]},
            "Failed to deserialize the JSON body into the target type: messages[0]: missing field `content`",
        ),
        (
            {"model": 3},
            (
                "Failed to deserialize the JSON body into the target type: model: invalid type: integer, "
                "expected "
                "a string"
            ),
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
            "This response_format type is unavailable now",
        ),
        (
            {"response_format": {"type": "json_object"}},
            (
                "Prompt must contain the word 'json' in some form to use 'response_format' of type "
                "'json_object'."
            ),
        ),
        ({"n": 2}, "Invalid n value (currently only n = 1 is supported)"),
        ({"max_tokens": 0}, "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]"),
    ],
)
def test_a_fault_is_told_as_the_provider_tells_it(members: dict[str, Any], message: str) -> None:
    assert refused(**members) == message


def test_json_is_asked_for_in_words_too() -> None:
    asked = {"role": "user", "content": "Answer in JSON."}
    assert read(asked, response_format={"type": "json_object"}).schema == {}


def test_every_call_needs_a_result_and_every_result_a_call() -> None:
    assert refused(USER, called(reasoning_content=""), USER) == (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. (insufficient tool messages following tool_calls message)"
    )
    orphaned = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
    assert refused(USER, RESULT) == orphaned
    assert refused(USER, called(reasoning_content=""), {**RESULT, "tool_call_id": "call_9"}) == orphaned


@pytest.mark.parametrize(
    ("kind", "status", "type_"),
    [
        (ApiErrorKind.AUTHENTICATION, 401, "authentication_error"),
        (ApiErrorKind.BILLING, 402, "unknown_error"),
        (ApiErrorKind.RATE_LIMIT, 429, "rate_limit_error"),
        (ApiErrorKind.OVERLOADED, 503, "service_unavailable_error"),
    ],
)
def test_each_error_has_a_status_and_a_type_and_no_hint(kind: ApiErrorKind, status: int, type_: str) -> None:
    answer = WIRE.error(ApiError(kind, "m", retry=RetryHint(1)), "0" * 24, NOW)
    assert (answer.status, answer.headers) == (status, {})
    assert json.loads(answer.body)["error"]["type"] == type_


def test_every_kind_of_error_can_be_told() -> None:
    for kind in ApiErrorKind:
        assert WIRE.error(ApiError(kind, "m"), "0" * 24, NOW).status >= 400


def test_a_stream_ends_for_want_of_machines() -> None:
    sent = WIRE.frames(read(stream=True), ANSWER)[:4]
    frame = WIRE.error_frame(ApiError(ApiErrorKind.OVERLOADED, "m"), "0" * 24, sent)
    chunk, done, rest = frame.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    value = json.loads(chunk.removeprefix(b"data: "))
    assert value["choices"][0]["finish_reason"] == "insufficient_system_resource"
    assert value["id"] == WIRE.document(read(), ANSWER)["id"]


def test_other_errors_in_a_stream_stand_where_a_chunk_would() -> None:
    sent = WIRE.frames(read(stream=True), ANSWER)[:4]
    frame = WIRE.error_frame(ApiError(ApiErrorKind.SERVER, "m"), "0" * 24, sent)
    assert json.loads(frame.removeprefix(b"data: "))["error"]["message"] == "m"


def test_an_answer_is_cached_as_it_is_sent_back() -> None:
    request = read()
    message = WIRE.document(request, ANSWER)["choices"][0]["message"]
    result = {**RESULT, "tool_call_id": message["tool_calls"][0]["id"]}
    again = read(USER, message, result).prompt.blocks
    assert again[:-1] == (*request.prompt.blocks, *WIRE.answer_blocks(request, ANSWER))
    plain = reply(ReasoningPart(("hm",), "c2ln"), TextPart(("Hi",)))
    message = WIRE.document(request, plain)["choices"][0]["message"]
    again = read(USER, message, USER).prompt.blocks
    assert again[:-1] == (*request.prompt.blocks, *WIRE.answer_blocks(request, plain))


def test_models_are_listed() -> None:
    listed = json.loads(WIRE.handle_other(call(WIRE, name="models"), SERVICE).body)
    assert "deepseek-v4-pro" in [entry["id"] for entry in listed["data"]]
    assert {entry["owned_by"] for entry in listed["data"]} == {"deepseek"}
