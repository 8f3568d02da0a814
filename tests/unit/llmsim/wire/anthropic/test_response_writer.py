from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.llmsim.provider_rules.limits import BucketState, RateAllowance
from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    BilledUsage,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    RetryForm,
    RetryHint,
    SimReply,
    SimRequest,
    SimStopReason,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from support.llmsim.simulator import NOW, FakeService, call, reply

WIRE = AnthropicWire()
PARTS = (
    ReasoningPart(("Let me ", "think."), "c2lnbmF0dXJl"),
    TextPart(("Hel", "lo")),
    ToolUsePart("a" * 24, "weather", ('{"ci', 'ty":"Oslo"}')),
    ToolUsePart("b" * 24, "time", ("{}",)),
)
USAGE = BilledUsage(fresh=3, read=20, written={"5m": 5, "1h": 7}, output=12, reasoning=4)


def request(**members: Any) -> SimRequest:
    body = {
        "model": "test-model",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "x"}],
        **members,
    }
    return WIRE.parse_request(call(WIRE, body, {"anthropic-version": "2026-10-21"}), FakeService())


def events(answer: SimReply, **members: Any) -> list[dict[str, Any]]:
    found = []
    for frame in WIRE.frames(request(**members), answer):
        name, data, *end = frame.data.decode().split("\n")
        assert end == ["", ""]
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        found.append(value)
    return found


def test_a_message_has_all_its_parts_and_its_usage() -> None:
    answer = WIRE.document(request(), reply(*PARTS, stop=SimStopReason.TOOL_USE, usage=USAGE))
    assert answer == {
        "id": "msg_0123456789abcdef01234567",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": [
            {"type": "thinking", "thinking": "Let me think.", "signature": "c2lnbmF0dXJl"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "toolu_" + "a" * 24, "name": "weather", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "toolu_" + "b" * 24, "name": "time", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "stop_details": None,
        "diagnostics": None,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 12,
            "cache_read_input_tokens": 20,
            "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 7},
            "output_tokens": 12,
            "output_tokens_details": {"thinking_tokens": 4},
            "server_tool_use": None,
            "service_tier": "standard",
            "speed": "standard",
            "inference_geo": "global",
        },
    }


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (SimStopReason.END, "end_turn"),
        (SimStopReason.TOOL_USE, "tool_use"),
        (SimStopReason.LENGTH, "max_tokens"),
        (SimStopReason.STOP_SEQUENCE, "stop_sequence"),
        (SimStopReason.REFUSAL, "refusal"),
        (SimStopReason.CONTENT_FILTER, "refusal"),
    ],
)
def test_why_it_ends_is_said_in_the_providers_words(stop: SimStopReason, reason: str) -> None:
    answer = reply(
        TextPart(("x",)),
        stop=stop,
        stop_sequence="END" if stop is SimStopReason.STOP_SEQUENCE else None,
    )
    document = WIRE.document(request(), answer)
    assert document["stop_reason"] == reason
    assert document["stop_sequence"] == ("END" if stop is SimStopReason.STOP_SEQUENCE else None)
    assert (document["stop_details"] is not None) == (reason == "refusal")


def test_a_refusal_is_explained_where_the_provider_explains_it() -> None:
    document = WIRE.document(request(), reply(RefusalPart(("I can", "not.")), stop=SimStopReason.REFUSAL))
    assert document["content"] == []
    assert document["stop_details"] == {"type": "refusal", "category": None, "explanation": "I cannot."}


def test_thoughts_that_are_not_shown_leave_their_signature() -> None:
    hidden = {"thinking": {"type": "adaptive", "display": "omitted"}}
    document = WIRE.document(request(**hidden), reply(PARTS[0]))
    assert document["content"] == [{"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"}]
    deltas = [
        each["delta"] for each in events(reply(PARTS[0]), **hidden) if "index" in each and "delta" in each
    ]
    assert deltas == [{"type": "signature_delta", "signature": "c2lnbmF0dXJl"}]


def test_nothing_said_is_no_content() -> None:
    assert WIRE.document(request(), reply(TextPart(())))["content"] == []


def test_arguments_that_are_cut_off_keep_what_is_complete() -> None:
    document = WIRE.document(
        request(),
        reply(ToolUsePart("a", "f", ('{"a":1,"b":"tw',)), stop=SimStopReason.LENGTH),
    )
    assert document["content"][0]["input"] == {"a": 1}


def test_a_stream_has_the_documented_events_in_the_documented_order() -> None:
    found = events(reply(*PARTS, stop=SimStopReason.TOOL_USE, usage=USAGE))
    assert [(each["type"], each.get("index")) for each in found] == [
        ("message_start", None),
        ("ping", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_delta", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("content_block_start", 3),
        ("content_block_delta", 3),
        ("content_block_delta", 3),
        ("content_block_stop", 3),
        ("message_delta", None),
        ("message_stop", None),
    ]
    deltas = [each["delta"] for each in found if each["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "think."},
        {"type": "signature_delta", "signature": "c2lnbmF0dXJl"},
        {"type": "text_delta", "text": "Hel"},
        {"type": "text_delta", "text": "lo"},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"ci'},
        {"type": "input_json_delta", "partial_json": 'ty":"Oslo"}'},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": "{}"},
    ]
    starts = [each["content_block"] for each in found if each["type"] == "content_block_start"]
    assert starts == [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "toolu_" + "a" * 24, "name": "weather", "input": {}},
        {"type": "tool_use", "id": "toolu_" + "b" * 24, "name": "time", "input": {}},
    ]


def test_a_stream_tells_the_input_first_and_the_whole_usage_at_its_end() -> None:
    first, *_, delta, _stop = events(reply(*PARTS, stop=SimStopReason.TOOL_USE, usage=USAGE))
    begun = first["message"]
    assert (begun["content"], begun["stop_reason"], begun["role"]) == ([], None, "assistant")
    assert begun["usage"]["input_tokens"] == 3
    assert begun["usage"]["cache_creation"] == {
        "ephemeral_5m_input_tokens": 5,
        "ephemeral_1h_input_tokens": 7,
    }
    assert begun["usage"]["output_tokens"] == 1
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None}
    assert delta["usage"] == {
        "input_tokens": 3,
        "cache_creation_input_tokens": 12,
        "cache_read_input_tokens": 20,
        "output_tokens": 12,
        "output_tokens_details": {"thinking_tokens": 4},
    }


def test_each_frame_says_what_it_carries() -> None:
    frames = WIRE.frames(request(), reply(*PARTS))
    assert frames[0].tag is FrameTag.START
    assert frames[1].tag is FrameTag.NOISE
    assert [frame.tag for frame in frames[-2:]] == [FrameTag.STOP, FrameTag.END]
    said = {tag: sum(frame.tokens for frame in frames if frame.tag is tag) for tag in FrameTag}
    assert (said[FrameTag.REASONING], said[FrameTag.TEXT]) == (4, 2)
    assert said[FrameTag.ARGUMENTS] == 4 + 1


def test_thoughts_take_their_time_whether_they_are_shown_or_not() -> None:
    def tokens(**members: Any) -> int:
        return sum(frame.tokens for frame in WIRE.frames(request(**members), reply(*PARTS)))

    assert tokens(thinking={"type": "adaptive", "display": "omitted"}) == tokens()


# ---- errors


@pytest.mark.parametrize(
    ("kind", "status", "type_", "again"),
    [
        (ApiErrorKind.INVALID_REQUEST, 400, "invalid_request_error", "false"),
        (ApiErrorKind.AUTHENTICATION, 401, "authentication_error", "false"),
        (ApiErrorKind.BILLING, 402, "billing_error", "false"),
        (ApiErrorKind.PERMISSION, 403, "permission_error", "false"),
        (ApiErrorKind.NOT_FOUND, 404, "not_found_error", "false"),
        (ApiErrorKind.METHOD_NOT_ALLOWED, 405, "invalid_request_error", "false"),
        (ApiErrorKind.CONFLICT, 409, "conflict_error", "true"),
        (ApiErrorKind.TOO_LARGE, 413, "request_too_large", "false"),
        (ApiErrorKind.RATE_LIMIT, 429, "rate_limit_error", "true"),
        (ApiErrorKind.SERVER, 500, "api_error", "true"),
        (ApiErrorKind.UNAVAILABLE, 503, "api_error", "true"),
        (ApiErrorKind.TIMEOUT, 504, "timeout_error", "true"),
        (ApiErrorKind.OVERLOADED, 529, "overloaded_error", "true"),
    ],
)
def test_each_error_has_its_status_and_its_type(
    kind: ApiErrorKind,
    status: int,
    type_: str,
    again: str,
) -> None:
    document = WIRE.error(ApiError(kind, "Oh."), "x" * 24, NOW)
    assert document.status == status
    assert document.headers == {"x-should-retry": again}
    assert json.loads(document.body) == {
        "type": "error",
        "error": {"type": type_, "message": "Oh."},
        "request_id": "req_" + "x" * 24,
    }


def test_an_errors_finer_code_is_a_detail() -> None:
    document = WIRE.error(ApiError(ApiErrorKind.RATE_LIMIT, "Slow.", code="ramp_limit_exceeded"), "x", NOW)
    assert json.loads(document.body)["error"]["details"] == {"error_code": "ramp_limit_exceeded"}


@pytest.mark.parametrize(
    ("hint", "headers"),
    [
        (RetryHint(2), {"retry-after": "2"}),
        (RetryHint(0.2, RetryForm.MILLISECONDS), {"retry-after-ms": "200"}),
        (RetryHint(60, RetryForm.DATE), {"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}),
    ],
)
def test_an_error_says_when_to_come_back(hint: RetryHint, headers: dict[str, str]) -> None:
    document = WIRE.error(ApiError(ApiErrorKind.RATE_LIMIT, "Slow.", retry=hint), "x", NOW)
    assert document.headers == {"x-should-retry": "true", **headers}


def test_an_error_in_a_stream_is_an_event_of_its_own() -> None:
    frame = WIRE.error_frame(ApiError(ApiErrorKind.OVERLOADED, "Overloaded"), "x", ())
    assert frame == (
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},'
        b'"request_id":"req_x"}\n\n'
    )


def test_headers_tell_the_request_and_what_is_left_of_each_limit() -> None:
    allowance = RateAllowance(requests=BucketState(50, 49, 1.2), output_tokens=BucketState(8000, 7000, 7.5))
    headers = dict(WIRE.headers("x", allowance, NOW))
    assert len(headers.pop("anthropic-organization-id")) == 36
    assert headers == {
        "request-id": "req_x",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:02Z",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        "anthropic-ratelimit-output-tokens-remaining": "7000",
        "anthropic-ratelimit-output-tokens-reset": "2026-01-01T00:00:08Z",
    }
    assert set(WIRE.headers("x", None, NOW)) == {"request-id", "anthropic-organization-id"}
