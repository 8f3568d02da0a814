from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    ResourceExhaustedError,
    Severity,
    UnavailableError,
)
from peripety.gateway.model import (
    ChatMessage,
    GenerateRequest,
    ResponseSchema,
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    Usage,
)
from peripety.gateway.providers.endpoint import Endpoint
from peripety.gateway.providers.failures import Failures
from peripety.gateway.providers.openai import GENERIC, OPENAI, ChatCompletionsWire
from peripety.gateway.providers.openai.body import to_openai_body
from peripety.gateway.providers.openai.stream import ChatCompletionStream
from support.calls import call_of
from support.upstream import delta, event, finish, usage

if TYPE_CHECKING:
    from peripety.gateway.providers.openai.dialect import Dialect

KEY = "sk-canary-1234567890"
ENDPOINT = Endpoint("generic", "http://a/v1", SecretStr(KEY))
FAILURES = Failures(ENDPOINT, "m", ChatCompletionsWire.vocabulary)
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def request(**options: Any) -> GenerateRequest:
    return GenerateRequest("s", (ChatMessage.user("u"),), **options)


def test_what_is_left_open_is_left_out() -> None:
    assert to_openai_body(call_of(request()), OPENAI).document == {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_without_a_system_text_there_is_no_system_message() -> None:
    call = call_of(GenerateRequest(None, (ChatMessage.user("u"),)))
    body = to_openai_body(call, OPENAI).document
    assert body["messages"] == [{"role": "user", "content": "u"}]


def test_options_travel_under_the_names_of_the_dialect() -> None:
    options = request(max_output_tokens=5, temperature=0.0, seed=0)
    assert to_openai_body(call_of(options), OPENAI).document["max_completion_tokens"] == 5
    generic = to_openai_body(call_of(options), GENERIC).document
    assert (generic["max_tokens"], generic["temperature"], generic["seed"]) == (5, 0.0, 0)


OPTIONAL = {**CLOSED, "required": []}
OPEN = {"type": "object", "additionalProperties": {"type": "integer"}}


def asked(document: dict[str, Any], dialect: Dialect) -> tuple[dict[str, Any], SchemaReport]:
    body = to_openai_body(call_of(request(schema=ResponseSchema("a", document))), dialect)
    assert body.schema_report is not None
    response_format = body.document["response_format"]
    assert response_format["type"] == "json_schema"
    return response_format["json_schema"], body.schema_report


def test_a_schema_that_strict_mode_takes_goes_along_as_it_is() -> None:
    for dialect in (OPENAI, GENERIC):
        told, report = asked(CLOSED, dialect)
        assert told == {"name": "a", "schema": CLOSED, "strict": True}
        assert report == SchemaReport(SchemaMethod.NATIVE)


def test_a_schema_is_brought_into_the_form_of_strict_mode_and_what_is_lost_is_reported() -> None:
    bounded = {**CLOSED, "properties": {"a": {"type": "integer", "maxLength": 3}}}
    told, report = asked(bounded, OPENAI)
    assert told == {"name": "a", "schema": CLOSED, "strict": True}
    assert [(finding.path, finding.severity) for finding in report.dropped] == [
        ("/properties/a/maxLength", Severity.WARNING)
    ]


def test_a_schema_that_strict_mode_cannot_express_goes_along_without_it() -> None:
    told, report = asked(OPEN, OPENAI)
    assert told == {"name": "a", "schema": OPEN, "strict": False}
    assert [finding.code for finding in report.dropped] == ["NOT_STRICT"]


@pytest.mark.parametrize("document", [OPTIONAL, OPEN, {**CLOSED, "minProperties": 1}])
def test_other_servers_are_told_the_schema_as_it_is(document: dict[str, Any]) -> None:
    told, report = asked(document, GENERIC)
    assert told["schema"] == document
    assert report.dropped == ()


def read(*events: bytes) -> tuple[str, ChatCompletionStream]:
    stream = ChatCompletionStream(FAILURES, "m")
    datas = [event.decode().removeprefix("data: ").strip() for event in events]
    deltas = [delta for data in datas for delta in stream.feed(data)]
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)), stream


def test_a_whole_answer_is_read_with_its_end_and_its_usage() -> None:
    text, stream = read(
        delta(None), delta("a"), delta(""), delta("b"), finish(), usage(5, 2, 3), b"data: [DONE]"
    )
    end = stream.finish()
    assert (text, end.stop_reason, end.model) == ("ab", StopReason.END, "m-1")
    assert end.usage == Usage(5, 2, 3, 0)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", StopReason.END),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.REFUSAL),
        ("tool_calls", StopReason.OTHER),
        ("new", StopReason.OTHER),
    ],
)
def test_every_reason_to_stop_has_a_meaning(reason: str, expected: StopReason) -> None:
    assert read(delta("a"), finish(reason))[1].finish().stop_reason is expected


def test_an_end_without_done_and_without_usage_is_an_end() -> None:
    assert read(delta("a", finish_reason="stop"))[1].finish().usage == Usage()


def test_done_without_a_reason_is_an_end() -> None:
    assert read(delta("a"), b"data: [DONE]")[1].finish().stop_reason is StopReason.OTHER


@pytest.mark.parametrize("events", [[], [delta("a")], [delta(None)], [delta("a"), usage(1, 1)]])
def test_an_end_that_was_not_announced_is_a_cut(events: list[bytes]) -> None:
    with pytest.raises(UnavailableError) as caught:
        read(*events)[1].finish()
    assert caught.value.code == "STREAM_TRUNCATED"


def test_a_refusal_in_words_is_a_refusal() -> None:
    refusal = event({"choices": [{"delta": {"refusal": "no"}}]})
    assert read(refusal, finish())[1].finish().stop_reason is StopReason.REFUSAL


def test_other_choices_and_unknown_fields_are_ignored() -> None:
    other = event(
        {"choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": "length"}], "obfuscation": "xx"}
    )
    text, stream = read(delta("a"), other, finish())
    assert text == "a"
    assert stream.finish().stop_reason is StopReason.END


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        "7",
        '{"choices": 7}',
        '{"choices": [7]}',
        '{"choices": [{"delta": {"content": 7}}]}',
        '{"usage": 7}',
        '{"choices": [{"delta": "x"}]}',
    ],
)
def test_a_chunk_of_the_wrong_shape_is_an_error(data: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        ChatCompletionStream(FAILURES, "m").feed(data)
    assert caught.value.code == "STREAM_MALFORMED"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "code": 500}, UnavailableError),
        ({"message": "x", "type": "server_error"}, UnavailableError),
        ({"message": "x", "code": "rate_limit_exceeded"}, ResourceExhaustedError),
        ({"message": "x", "type": "invalid_request_error", "code": None}, InvalidArgumentError),
        ({"message": "x", "code": 400, "type": "exceed_context_size_error"}, InvalidArgumentError),
        ("x", UnavailableError),
    ],
)
def test_an_error_inside_the_stream_is_raised_for_what_it_is(error: Any, kind: type[PeripetyError]) -> None:
    with pytest.raises(kind):
        ChatCompletionStream(FAILURES, "m").feed(json.dumps({"error": error}))


@pytest.mark.parametrize(
    ("status", "reported", "kind", "code"),
    [
        (307, {}, FailedPreconditionError, "PROVIDER_REDIRECTS"),
        (400, {}, InvalidArgumentError, "PROVIDER_REFUSED_REQUEST"),
        (400, {"code": "context_length_exceeded"}, InvalidArgumentError, "CONTEXT_LENGTH_EXCEEDED"),
        (401, {}, FailedPreconditionError, "PROVIDER_REFUSED_KEY"),
        (402, {}, ResourceExhaustedError, "PROVIDER_QUOTA_EXHAUSTED"),
        (403, {}, FailedPreconditionError, "PROVIDER_REFUSED_KEY"),
        (404, {}, NotFoundError, "MODEL_NOT_FOUND"),
        (408, {}, UnavailableError, "PROVIDER_FAILED"),
        (409, {}, UnavailableError, "PROVIDER_BUSY"),
        (425, {}, UnavailableError, "PROVIDER_BUSY"),
        (422, {}, InvalidArgumentError, "PROVIDER_REFUSED_REQUEST"),
        (429, {}, ResourceExhaustedError, "PROVIDER_RATE_LIMITED"),
        (429, {"code": "insufficient_quota"}, ResourceExhaustedError, "PROVIDER_QUOTA_EXHAUSTED"),
        (429, {"code": "credit_balance_exhausted"}, ResourceExhaustedError, "PROVIDER_QUOTA_EXHAUSTED"),
        (500, {}, UnavailableError, "PROVIDER_FAILED"),
        (503, {}, UnavailableError, "PROVIDER_FAILED"),
        (529, {}, UnavailableError, "PROVIDER_FAILED"),
    ],
)
def test_every_status_has_a_kind_and_a_reason(
    status: int, reported: dict[str, str], kind: type[PeripetyError], code: str
) -> None:
    error = FAILURES.by_status(status, {}, json.dumps({"error": {"message": "told", **reported}}).encode())
    assert (type(error), error.code) == (kind, code)


@pytest.mark.parametrize(
    ("status", "variable"), [(401, "OPENAI_API_KEY"), (404, "MODEL_NAME"), (302, "OPENAI_API_BASE")]
)
def test_an_error_names_the_variable_to_set(status: int, variable: str) -> None:
    assert variable in FAILURES.by_status(status, {}, b"").message


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'"x"', b'{"error": "x"}', b'{"message": "x"}', b"\xff" * 10]
)
def test_any_body_is_survived(body: bytes) -> None:
    assert FAILURES.by_status(500, {}, body).code == "PROVIDER_FAILED"


@pytest.mark.parametrize("status", [429, 503])
def test_the_time_to_wait_is_told(status: int) -> None:
    assert FAILURES.by_status(status, {"retry-after": "7"}, b"").retry_after == 7


@pytest.mark.parametrize(("status", "seconds"), [(429, 360), (409, None), (500, None), (503, None)])
def test_the_next_minute_of_a_limit_is_waited_for_when_the_limit_is_reached(
    status: int, seconds: float | None
) -> None:
    headers = {"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}
    assert FAILURES.by_status(status, headers, b"").retry_after == seconds


def test_an_error_inside_the_stream_may_tell_the_time_to_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5s"}]
    assert FAILURES.in_stream({"code": 429, "details": details}).retry_after == 5


def test_the_servers_words_are_passed_on_without_the_key_and_on_one_line() -> None:
    told = json.dumps({"error": {"message": f"bad {KEY}\nline two\u2028" + "x" * 1000}}).encode()
    message = FAILURES.by_status(400, {}, told).message
    assert "bad *** line two" in message
    assert KEY not in message
    assert len(message) < 500


def test_what_the_server_says_about_a_key_is_never_repeated() -> None:
    told = json.dumps({"error": {"message": "Incorrect API key provided: sk-can****7890"}}).encode()
    assert "sk-can" not in FAILURES.by_status(401, {}, told).message
