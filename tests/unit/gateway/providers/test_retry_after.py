"""Retry-after hints of the providers, in all their forms."""

from __future__ import annotations

import time
from typing import Any

import pytest

from peripety.gateway.providers.retry_after import parse_retry_after

NOW = 1_780_000_000.0  # 2026-05-28T20:26:40Z
SOON = "Thu, 28 May 2026 20:27:10 GMT"
RETRY_INFO = {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "52.5s"}]}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": SOON}, 30),
        ({"retry-after": "Thu, 28 May 2026 20:26:10 GMT"}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"x-ratelimit-reset-requests": "1s"}, 1),
        ({"x-ratelimit-reset-tokens": "6m0s"}, 360),
        ({"x-ratelimit-reset-tokens": "1h0m12.5s"}, 3612.5),
        ({"x-ratelimit-reset-tokens": "320ms"}, 0.32),
        ({"x-ratelimit-reset-requests": "2026-05-28T20:26:50Z"}, 10),
        ({"anthropic-ratelimit-input-tokens-reset": "2026-05-28T20:27:40Z"}, 60),
        ({"x-ratelimit-reset-tokens": "999999999d"}, 365 * 86400),
        ({"retry-after": "3", "x-ratelimit-reset-tokens": "6m0s"}, 3),
    ],
)
def test_headers_are_read_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert parse_retry_after(headers, {}, NOW, is_rate_limited=True) == pytest.approx(seconds)


def test_a_body_may_say_it() -> None:
    assert parse_retry_after({}, RETRY_INFO, NOW, is_rate_limited=True) == 52.5
    assert parse_retry_after({"retry-after": "1"}, RETRY_INFO, NOW, is_rate_limited=True) == 1


@pytest.mark.parametrize(
    ("remaining", "seconds"),
    [({"requests": "0", "tokens": "9"}, 1), ({"tokens": "0"}, 360), ({}, 360)],
)
def test_of_several_limits_those_that_are_used_up_count(remaining: dict[str, str], seconds: float) -> None:
    headers = {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}
    headers |= {f"x-ratelimit-remaining-{kind}": left for kind, left in remaining.items()}
    assert parse_retry_after(headers, {}, NOW, is_rate_limited=True) == seconds


def test_limits_that_are_not_reached_are_not_waited_for() -> None:
    headers = {"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "9"}
    assert parse_retry_after(headers, {}, NOW, is_rate_limited=False) is None
    assert parse_retry_after(headers | {"retry-after": "2"}, {}, NOW, is_rate_limited=False) == 2


@pytest.mark.parametrize("text", ["2026-05-28T20:26:50", "Thu, 28 May 2026 20:26:50 -0000"])
def test_a_moment_without_a_zone_is_not_this_machines_time(
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT+7")
    time.tzset()
    try:
        assert parse_retry_after({"retry-after": text}, {}, NOW, is_rate_limited=True) == 10
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-1", "nan", "inf", "1e9", "9" * 400, "1x", "6m0", "2026-13-45"],
)
def test_what_is_none_of_these_is_no_hint(text: str) -> None:
    headers = {"retry-after": text, "retry-after-ms": text, "x-ratelimit-reset-tokens": text}
    assert (
        parse_retry_after(
            headers,
            {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": text}]},
            NOW,
            is_rate_limited=True,
        )
        is None
    )


@pytest.mark.parametrize(
    "details",
    [None, 7, "x", [7], [{}], [{"@type": 7}], [{"@type": "google.rpc.RetryInfo"}]],
)
def test_details_of_any_shape_are_survived(details: Any) -> None:
    assert parse_retry_after({}, {"details": details}, NOW, is_rate_limited=True) is None
