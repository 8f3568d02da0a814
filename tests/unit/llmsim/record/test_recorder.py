from __future__ import annotations

import pytest

from peripety.llmsim.record.recorder import REDACTED, Redactor

SEEN = "not-a-known-form-0123"


@pytest.mark.parametrize(
    ("headers", "params"),
    [
        ({"authorization": f"Bearer {SEEN}"}, {}),
        ({"x-api-key": SEEN}, {}),
        ({"x-goog-api-key": SEEN}, {}),
        ({}, {"key": SEEN}),
    ],
)
def test_a_credential_that_was_sent_is_taken_out_wherever_it_stands(
    headers: dict[str, str],
    params: dict[str, str],
) -> None:
    redactor = Redactor()
    redactor.add_request(headers, params)
    assert redactor.redact_text(f"your key {SEEN}, is wrong") == f"your key {REDACTED}, is wrong"
    value = {"a": [SEEN, {SEEN: 1}], "b": 2, "c": None}
    assert redactor.redact_value(value) == {"a": [REDACTED, {REDACTED: 1}], "b": 2, "c": None}


@pytest.mark.parametrize(
    "credential",
    [
        "sk-ant-api03-AbCdEfGhIjKlMnOp",
        "sk-proj-AbCdEfGhIjKlMnOpQrSt",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "ghp_0123456789abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk",
    ],
)
def test_what_looks_like_a_credential_is_taken_out(credential: str) -> None:
    assert Redactor().redact_text(f"({credential})") == f"({REDACTED})"


@pytest.mark.parametrize(
    "text",
    ["risk-taking-is-a-long-word-here", "ask-me", "Bearer of news", "AIza", "sk-1"],
)
def test_ordinary_words_stay(text: str) -> None:
    assert Redactor().redact_text(text) == text


def test_a_short_credential_does_not_tear_words_apart() -> None:
    redactor = Redactor()
    redactor.add_request({"x-api-key": "test"}, {})
    assert redactor.redact_text("the latest") == "the latest"
