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
    SimStopReason,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.openai.api import OpenAiChat
from peripety.llmsim.wire.openai.chat_response import format_duration
from support.llmsim.simulator import NOW, FakeService, call, reply

WIRE = OpenAiChat()
SERVICE = FakeService()
PARTS = (
    ReasoningPart(("Let me ", "think."), "c2ln"),
    TextPart(("Hel", "lo")),
    ToolUsePart("a" * 24, "weather", ('{"ci', 'ty":"Oslo"}')),
    ToolUsePart("b" * 24, "time", ("{}",)),
)
USAGE = BilledUsage(fresh=3, read=20, written={"30m": 5, "12h": 7}, output=12, reasoning=4)


def request(**members: Any) -> Any:
    body = {"model": "gpt-6-sol", "messages": [{"role": "user", "content": "Hi"}], **members}
    return WIRE.parse_request(call(WIRE, body), SERVICE)


def document(answer: SimReply, **members: Any) -> Any:
    return WIRE.document(request(**members), answer)


def chunks(answer: SimReply, **members: Any) -> list[dict[str, Any]]:
    frames = WIRE.frames(request(stream=True, **members), answer)
    assert frames[-1].data == b"data: [DONE]\n\n"
    assert frames[-1].tag is FrameTag.END
    texts = [frame.data.decode() for frame in frames[:-1]]
    assert all(text.startswith("data: ") and text.endswith("\n\n") for text in texts)
    return [json.loads(text.removeprefix("data: ")) for text in texts]


def deltas(answer: SimReply, **members: Any) -> list[Any]:
    return [each["choices"][0]["delta"] for each in chunks(answer, **members) if each["choices"]]


def test_a_completion_has_all_that_is_documented() -> None:
    answer = document(
        reply(*PARTS, model="gpt-6-sol", stop=SimStopReason.TOOL_USE, usage=USAGE),
        service_tier="fast",
    )
    fingerprint = answer.pop("system_fingerprint")
    assert fingerprint.startswith("fp_")
    assert answer == {
        "id": "chatcmpl-0123456789abcdef01234567",
        "object": "chat.completion",
        "created": int(NOW),
        "model": "gpt-6-sol",
        "service_tier": "priority",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hello",
                    "refusal": None,
                    "annotations": [],
                    "tool_calls": [
                        {
                            "id": "call_" + "a" * 24,
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                        },
                        {
                            "id": "call_" + "b" * 24,
                            "type": "function",
                            "function": {"name": "time", "arguments": "{}"},
                        },
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            },
        ],
        "usage": {
            "prompt_tokens": 35,
            "completion_tokens": 12,
            "total_tokens": 47,
            "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 12, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 4,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
    }


def test_an_answer_of_calls_alone_has_no_content() -> None:
    message = document(reply(PARTS[2], stop=SimStopReason.TOOL_USE))["choices"][0]["message"]
    assert message["content"] is None
    assert deltas(reply(PARTS[2], stop=SimStopReason.TOOL_USE))[0]["content"] is None


def test_a_refusal_has_a_field_of_its_own() -> None:
    answer = reply(RefusalPart(("I ", "can't.")), stop=SimStopReason.REFUSAL)
    choice = document(answer)["choices"][0]
    assert (choice["message"]["content"], choice["message"]["refusal"]) == (None, "I can't.")
    assert choice["finish_reason"] == "stop"
    assert deltas(answer)[1:-1] == [{"refusal": "I "}, {"refusal": "can't."}]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (SimStopReason.END, "stop"),
        (SimStopReason.STOP_SEQUENCE, "stop"),
        (SimStopReason.REFUSAL, "stop"),
        (SimStopReason.TOOL_USE, "tool_calls"),
        (SimStopReason.LENGTH, "length"),
        (SimStopReason.CONTENT_FILTER, "content_filter"),
    ],
)
def test_each_reason_to_stop_has_a_name(stop: SimStopReason, reason: str) -> None:
    answer = reply(TextPart(("x",)), stop=stop)
    assert document(answer)["choices"][0]["finish_reason"] == reason
    reasons = [each["choices"][0]["finish_reason"] for each in chunks(answer)]
    assert reasons == [*[None] * (len(reasons) - 1), reason]


def test_a_stream_has_the_role_first_and_each_call_begins_with_its_name() -> None:
    assert deltas(reply(*PARTS, stop=SimStopReason.TOOL_USE)) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Hel"},
        {"content": "lo"},
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_" + "a" * 24,
                    "type": "function",
                    "function": {"name": "weather", "arguments": ""},
                },
            ],
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"ci'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'ty":"Oslo"}'}}]},
        {
            "tool_calls": [
                {
                    "index": 1,
                    "id": "call_" + "b" * 24,
                    "type": "function",
                    "function": {"name": "time", "arguments": ""},
                },
            ],
        },
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]


def test_usage_is_streamed_only_when_it_is_asked_for() -> None:
    answer = reply(TextPart(("x",)), usage=USAGE)
    assert all("usage" not in each for each in chunks(answer))
    *rest, last = chunks(answer, stream_options={"include_usage": True})
    assert all(each["usage"] is None for each in rest)
    assert last["choices"] == []
    assert last["usage"] == document(answer)["usage"]


def test_padding_is_streamed_only_when_it_is_asked_for() -> None:
    answer = reply(TextPart(("x", "yy")))
    assert all("obfuscation" not in each for each in chunks(answer))
    padded = chunks(answer, stream_options={"include_obfuscation": True})
    assert all(each["obfuscation"] for each in padded)
    assert padded == chunks(answer, stream_options={"include_obfuscation": True})


def test_frames_are_tagged_and_bring_every_token() -> None:
    frames = WIRE.frames(request(stream=True, stream_options={"include_usage": True}), reply(*PARTS))
    assert [frame.tag for frame in frames] == [
        FrameTag.START, FrameTag.TEXT, FrameTag.TEXT, FrameTag.PART, FrameTag.ARGUMENTS,
        FrameTag.ARGUMENTS, FrameTag.PART, FrameTag.ARGUMENTS,
        FrameTag.STOP, FrameTag.USAGE, FrameTag.END,
    ]  # fmt: skip
    # thoughts 4, "Hello" 2, "weather" 2 and its arguments 4, "time" 1 and its arguments 1
    assert sum(frame.tokens for frame in frames) == 14
    assert frames[0].tokens == 4


# ---- errors


@pytest.mark.parametrize(
    ("error", "status", "type_", "code"),
    [
        (ApiError(ApiErrorKind.INVALID_REQUEST, "m"), 400, "invalid_request_error", None),
        (ApiError(ApiErrorKind.AUTHENTICATION, "m"), 401, "invalid_request_error", "invalid_api_key"),
        (ApiError(ApiErrorKind.BILLING, "m"), 429, "insufficient_quota", "insufficient_quota"),
        (
            ApiError(ApiErrorKind.BILLING, "m", code="credit_balance_exhausted"),
            429,
            "insufficient_quota",
            "credit_balance_exhausted",
        ),
        (ApiError(ApiErrorKind.PERMISSION, "m"), 403, "invalid_request_error", None),
        (ApiError(ApiErrorKind.NOT_FOUND, "m"), 404, "invalid_request_error", None),
        (
            ApiError(ApiErrorKind.METHOD_NOT_ALLOWED, "m"),
            405,
            "invalid_request_error",
            "method_not_supported",
        ),
        (ApiError(ApiErrorKind.CONFLICT, "m"), 409, "invalid_request_error", None),
        (ApiError(ApiErrorKind.TOO_LARGE, "m"), 413, "invalid_request_error", "request_too_large"),
        (ApiError(ApiErrorKind.RATE_LIMIT, "m"), 429, "requests", "rate_limit_exceeded"),
        (ApiError(ApiErrorKind.RATE_LIMIT, "on tokens per min (TPM)"), 429, "tokens", "rate_limit_exceeded"),
        (ApiError(ApiErrorKind.RATE_LIMIT, "m", code="slow_down"), 429, "requests", "slow_down"),
        (ApiError(ApiErrorKind.SERVER, "m"), 500, "server_error", None),
        (ApiError(ApiErrorKind.UNAVAILABLE, "m"), 503, "service_unavailable_error", None),
        (ApiError(ApiErrorKind.OVERLOADED, "m"), 503, "service_unavailable_error", "server_is_overloaded"),
        (ApiError(ApiErrorKind.TIMEOUT, "m"), 504, "server_error", "timeout"),
    ],
)
def test_each_error_has_a_status_a_type_and_a_code(
    error: ApiError,
    status: int,
    type_: str,
    code: str | None,
) -> None:
    answer = WIRE.error(error, "0" * 24, NOW)
    assert answer.status == status
    assert json.loads(answer.body) == {
        "error": {"message": error.message, "type": type_, "param": None, "code": code},
    }


def test_every_kind_of_error_can_be_told() -> None:
    for kind in ApiErrorKind:
        assert WIRE.error(ApiError(kind, "m"), "0" * 24, NOW).status >= 400


@pytest.mark.parametrize(
    ("hint", "headers"),
    [
        (None, {}),
        (RetryHint(2), {"retry-after": "2"}),
        (RetryHint(0.5, RetryForm.MILLISECONDS), {"retry-after-ms": "500"}),
        (RetryHint(1, RetryForm.DATE), {"retry-after": "Thu, 01 Jan 2026 00:00:01 GMT"}),
    ],
)
def test_an_error_says_when_to_come_back(hint: RetryHint | None, headers: dict[str, str]) -> None:
    assert WIRE.error(ApiError(ApiErrorKind.RATE_LIMIT, "m", retry=hint), "0" * 24, NOW).headers == headers


def test_an_error_in_a_stream_stands_where_a_chunk_would() -> None:
    frame = WIRE.error_frame(ApiError(ApiErrorKind.OVERLOADED, "m"), "0" * 24, ())
    assert json.loads(frame.removeprefix(b"data: ")) == {
        "error": {
            "message": "m",
            "type": "service_unavailable_error",
            "param": None,
            "code": "server_is_overloaded",
        },
    }


# ---- headers and models


def test_headers_tell_the_id_and_what_is_left() -> None:
    assert WIRE.headers("0" * 24, None, NOW) == {
        "x-request-id": "req_" + "0" * 24,
        "openai-version": "2020-10-01",
    }
    allowance = RateAllowance(requests=BucketState(60, 59, 1.0), tokens=BucketState(1000, 0, 360.0))
    told = WIRE.headers("0" * 24, allowance, NOW)
    assert {name: value for name, value in told.items() if name.startswith("x-ratelimit")} == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.0171, "18ms"),
        (1, "1s"),
        (7.66, "7.66s"),
        (59.9999, "1m0s"),
        (360, "6m0s"),
        (3661.5, "1h1m1.5s"),
        (36_000, "10h0m0s"),
    ],
)
def test_a_time_span_is_written_as_short_as_it_can_be(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_models_are_listed_and_shown() -> None:
    listed = json.loads(WIRE.handle_other(call(WIRE, name="models"), SERVICE).body)
    assert listed["object"] == "list"
    assert "gpt-6-sol" in [entry["id"] for entry in listed["data"]]
    shown = WIRE.handle_other(call(WIRE, name="model", params={"model": "gpt-4o-2024-08-06"}), SERVICE)
    assert json.loads(shown.body) == {
        "id": "gpt-4o-2024-08-06",
        "object": "model",
        "created": 0,
        "owned_by": "openai",
    }


def test_a_model_that_is_not_there_is_not_shown() -> None:
    with pytest.raises(ApiError, match="The model 'nobody' does not exist") as raised:
        WIRE.handle_other(call(WIRE, name="model", params={"model": "nobody"}), SERVICE)
    assert (raised.value.kind, raised.value.code) == (ApiErrorKind.NOT_FOUND, "model_not_found")
