"""Anthropic errors and headers."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ErrorKind
from peripety.simulator.wire.base import Document
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.retrying import retry_headers

if TYPE_CHECKING:
    from peripety.simulator.model import ApiError
    from peripety.simulator.truth.limits import Allowance, Bucket

__all__ = ["error_document", "error_value", "headers", "request_name"]

ORGANIZATION = "00000000-0000-4000-8000-000000000000"

_SHAPES = {
    ErrorKind.INVALID_REQUEST: (400, "invalid_request_error"),
    ErrorKind.AUTHENTICATION: (401, "authentication_error"),
    ErrorKind.BILLING: (402, "billing_error"),
    ErrorKind.PERMISSION: (403, "permission_error"),
    ErrorKind.NOT_FOUND: (404, "not_found_error"),
    ErrorKind.METHOD_NOT_ALLOWED: (405, "invalid_request_error"),
    ErrorKind.CONFLICT: (409, "conflict_error"),
    ErrorKind.TOO_LARGE: (413, "request_too_large"),
    ErrorKind.RATE_LIMIT: (429, "rate_limit_error"),
    ErrorKind.SERVER: (500, "api_error"),
    ErrorKind.UNAVAILABLE: (503, "api_error"),
    ErrorKind.OVERLOADED: (529, "overloaded_error"),
    ErrorKind.TIMEOUT: (504, "timeout_error"),
}
_WORTH_RETRYING = (408, 409, 429)
_SERVER_ERRORS = 500


def request_name(request_id: str) -> str:
    """Return the request id in the provider's format."""
    return f"req_{request_id}"


def error_value(error: ApiError, request_id: str) -> dict[str, Any]:
    """Return the JSON value of an error, for a body and for a stream."""
    _, type_ = _SHAPES[error.kind]
    described: dict[str, Any] = {"type": type_, "message": error.message}
    if error.code is not None:
        described["details"] = {"error_code": error.code}
    return {"type": "error", "error": described, "request_id": request_name(request_id)}


def error_document(error: ApiError, request_id: str, now: float) -> Document:
    """Return an error response, with a retry header if the error is retryable."""
    status, _ = _SHAPES[error.kind]
    again = status in _WORTH_RETRYING or status >= _SERVER_ERRORS
    headers = {"x-should-retry": str(again).lower(), **retry_headers(error.retry, now)}
    return Document(status, compact(error_value(error, request_id)), headers)


def headers(request_id: str, allowance: Allowance | None, now: float) -> dict[str, str]:
    """Return the headers of every answer. Reset times are in whole seconds, rounded up."""
    found = {"request-id": request_name(request_id), "anthropic-organization-id": ORGANIZATION}
    if allowance is not None:
        buckets = {
            "requests": allowance.requests,
            "tokens": allowance.tokens,
            "input-tokens": allowance.input_tokens,
            "output-tokens": allowance.output_tokens,
        }
        for name, bucket in buckets.items():
            found |= _limit(f"anthropic-ratelimit-{name}", bucket, now)
    return found


def _limit(name: str, bucket: Bucket | None, now: float) -> dict[str, str]:
    if bucket is None:
        return {}
    reset = datetime.fromtimestamp(ceil(now + bucket.reset_seconds), UTC)
    return {
        f"{name}-limit": str(bucket.limit),
        f"{name}-remaining": str(bucket.remaining),
        f"{name}-reset": reset.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
