"""Mapping of errors from OpenAI and from all servers with OpenAI-compatible errors."""

from __future__ import annotations

import json

import pytest
from pydantic import SecretStr

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.calls.retry import is_transient
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.openai.response_stream import ChatCompletionsWire
from peripety.gateway.providers.provider import Endpoint

KEY = "sk-canary-1234567890"
ENDPOINT = Endpoint("generic", "http://a/v1", SecretStr(KEY))
FAILURES = ErrorMapper(ENDPOINT, "m", ChatCompletionsWire.vocabulary)


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
        (429, {"type": "insufficient_quota"}, ResourceExhaustedError, "PROVIDER_QUOTA_EXHAUSTED"),
        (429, {"code": "billing_not_active"}, ResourceExhaustedError, "PROVIDER_QUOTA_EXHAUSTED"),
        (429, {"code": "slow_down"}, ResourceExhaustedError, "PROVIDER_RATE_LIMITED"),
        (500, {}, UnavailableError, "PROVIDER_FAILED"),
        (503, {}, UnavailableError, "PROVIDER_FAILED"),
        (529, {}, UnavailableError, "PROVIDER_FAILED"),
    ],
)
def test_every_status_has_a_kind_and_a_reason(
    status: int,
    reported: dict[str, str],
    kind: type[PeripetyError],
    code: str,
) -> None:
    error = FAILURES.from_response(
        status,
        {},
        json.dumps({"error": {"message": "told", **reported}}).encode(),
    )
    assert (type(error), error.code) == (kind, code)


@pytest.mark.parametrize("told", ["true", "false"])
def test_a_server_that_says_whether_to_ask_again_is_believed(told: str) -> None:
    for status in (400, 429, 500):
        error = FAILURES.from_response(status, {"X-Should-Retry": told}, b"")
        assert is_transient(error) is (told == "true")


def test_a_server_that_says_it_in_other_words_is_not() -> None:
    assert is_transient(FAILURES.from_response(500, {"x-should-retry": "perhaps"}, b""))


@pytest.mark.parametrize(
    ("status", "variable"),
    [(401, "OPENAI_API_KEY"), (404, "MODEL_NAME"), (302, "OPENAI_API_BASE")],
)
def test_an_error_names_the_variable_to_set(status: int, variable: str) -> None:
    assert variable in FAILURES.from_response(status, {}, b"").message


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'"x"', b'{"error": "x"}', b'{"message": "x"}', b"\xff" * 10],
)
def test_any_body_is_survived(body: bytes) -> None:
    assert FAILURES.from_response(500, {}, body).code == "PROVIDER_FAILED"


@pytest.mark.parametrize("status", [429, 503])
def test_the_time_to_wait_is_told(status: int) -> None:
    assert FAILURES.from_response(status, {"retry-after": "7"}, b"").retry_after == 7


@pytest.mark.parametrize(("status", "seconds"), [(429, 360), (409, None), (500, None), (503, None)])
def test_the_next_minute_of_a_limit_is_waited_for_when_the_limit_is_reached(
    status: int,
    seconds: float | None,
) -> None:
    headers = {"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}
    assert FAILURES.from_response(status, headers, b"").retry_after == seconds


def test_an_error_inside_the_stream_may_tell_the_time_to_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5s"}]
    assert FAILURES.from_stream({"code": 429, "details": details}).retry_after == 5


def test_the_servers_words_are_passed_on_without_the_key_and_on_one_line() -> None:
    told = json.dumps({"error": {"message": f"bad {KEY}\nline two\u2028" + "x" * 1000}}).encode()
    message = FAILURES.from_response(400, {}, told).message
    assert "bad *** line two" in message
    assert KEY not in message
    assert len(message) < 500


def test_what_the_server_says_about_a_key_is_never_repeated() -> None:
    told = json.dumps({"error": {"message": "Incorrect API key provided: sk-can****7890"}}).encode()
    assert "sk-can" not in FAILURES.from_response(401, {}, told).message
