"""Retry-After: parser of the providers' retry hints.

Hints come in headers and bodies, as seconds, durations or dates.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_NUMBER = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*")
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[dhms]))+")
_PART = re.compile(r"([\d.]+)(ms|[dhms])")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MAX_SECONDS = 365 * 86400.0
_RESET = re.compile(r"(?:x|anthropic)-ratelimit-(?:reset-(\S+)|(\S+)-reset)")


def parse_retry_after(
    headers: Mapping[str, str],
    error: Mapping[str, Any],
    now: float,
    *,
    is_rate_limited: bool,
) -> float | None:
    """Return the provider's retry delay in seconds; None if it gives none.

    The most exact value wins: `retry-after-ms`, then `retry-after` in seconds or as a date, then a
    `RetryInfo` in the body, then the reset times of exhausted limits (`x-ratelimit-reset-requests`,
    `anthropic-ratelimit-tokens-reset` and similar, as durations or dates).

    Args:
        headers: response headers.
        error: the error in the response body.
        now: current time, in seconds since 1970.
        is_rate_limited: whether the response reports a reached limit. Many providers send reset times
            with every
            answer; only then are they a retry delay.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    told = _explicit_delays(lowered, error, now)
    if told is None and is_rate_limited:
        told = max(_reset_delays(lowered, now), default=None)
    return None if told is None else min(told, _MAX_SECONDS)


def _explicit_delays(headers: Mapping[str, str], error: Mapping[str, Any], now: float) -> float | None:
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    for told in (headers.get("retry-after", ""), _retry_delay(error)):
        seconds = _parse_delay(told, now)
        if seconds is not None:
            return seconds
    return None


def _retry_delay(error: Mapping[str, Any]) -> str:
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and str(detail.get("@type")).endswith("google.rpc.RetryInfo"):
            return str(detail.get("retryDelay"))
    return ""


def _reset_delays(headers: Mapping[str, str], now: float) -> Iterator[float]:
    """Yield the reset times of the exhausted limits; of all limits if it is unknown which are exhausted."""
    resets = [(name, match[1] or match[2]) for name in headers if (match := _RESET.fullmatch(name))]
    used_up = [(name, kind) for name, kind in resets if _remaining_quota(headers, name, kind) == 0]
    for name, _ in used_up or resets:
        seconds = _parse_delay(headers[name], now)
        if seconds is not None:
            yield seconds


def _remaining_quota(headers: Mapping[str, str], reset: str, kind: str) -> float | None:
    name = (
        f"x-ratelimit-remaining-{kind}" if reset.startswith("x-") else f"anthropic-ratelimit-{kind}-remaining"
    )
    return _parse_number(headers.get(name, ""))


def _parse_delay(text: str, now: float) -> float | None:
    number = _parse_number(text)
    if number is not None:
        return number
    if _DURATION.fullmatch(text.strip()):
        return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
    moment = _parse_date(text)
    return None if moment is None else max(0.0, moment - now)


def _parse_number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text)
    return None if match is None else float(match[1])


def _parse_date(text: str) -> float | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text.strip())
        except (ValueError, OverflowError):
            continue
        # A date without time zone is in the provider's zone, never in the local one.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None
