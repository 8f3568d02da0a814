"""Errors of Anthropic's API: messages, documents and headers."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import ApiError, ApiErrorKind
from peripety.llmsim.wire.base import HttpDocument, compact_json, retry_headers
from peripety.llmsim.wire.request_parser import JsonType, bracketed_path, dotted_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.llmsim.provider_rules.limits import BucketState, RateAllowance
    from peripety.llmsim.wire.request_parser import Path


ORGANIZATION = "00000000-0000-4000-8000-000000000000"

_SHAPES = {
    ApiErrorKind.INVALID_REQUEST: (400, "invalid_request_error"),
    ApiErrorKind.AUTHENTICATION: (401, "authentication_error"),
    ApiErrorKind.BILLING: (402, "billing_error"),
    ApiErrorKind.PERMISSION: (403, "permission_error"),
    ApiErrorKind.NOT_FOUND: (404, "not_found_error"),
    ApiErrorKind.METHOD_NOT_ALLOWED: (405, "invalid_request_error"),
    ApiErrorKind.CONFLICT: (409, "conflict_error"),
    ApiErrorKind.TOO_LARGE: (413, "request_too_large"),
    ApiErrorKind.RATE_LIMIT: (429, "rate_limit_error"),
    ApiErrorKind.SERVER: (500, "api_error"),
    ApiErrorKind.UNAVAILABLE: (503, "api_error"),
    ApiErrorKind.OVERLOADED: (529, "overloaded_error"),
    ApiErrorKind.TIMEOUT: (504, "timeout_error"),
}
_RETRYABLE_KINDS = (408, 409, 429)
_SERVER_ERRORS = 500


def format_request_id(request_id: str) -> str:
    """Return the request id in the provider's format."""
    return f"req_{request_id}"


def error_value(error: ApiError, request_id: str) -> dict[str, Any]:
    """Return the JSON value of an error, for a body and for a stream."""
    _, type_ = _SHAPES[error.kind]
    described: dict[str, Any] = {"type": type_, "message": error.message}
    if error.code is not None:
        described["details"] = {"error_code": error.code}
    return {"type": "error", "error": described, "request_id": format_request_id(request_id)}


def error_document(error: ApiError, request_id: str, now: float) -> HttpDocument:
    """Return an error response, with a retry header if the error is retryable."""
    status, _ = _SHAPES[error.kind]
    again = status in _RETRYABLE_KINDS or status >= _SERVER_ERRORS
    headers = {"x-should-retry": str(again).lower(), **retry_headers(error.retry, now)}
    return HttpDocument(status, compact_json(error_value(error, request_id)), headers)


def rate_limit_headers(request_id: str, allowance: RateAllowance | None, now: float) -> dict[str, str]:
    """Return the headers of every answer. Reset times are in whole seconds, rounded up."""
    found = {"request-id": format_request_id(request_id), "anthropic-organization-id": ORGANIZATION}
    if allowance is not None:
        buckets = {
            "requests": allowance.requests,
            "tokens": allowance.tokens,
            "input-tokens": allowance.input_tokens,
            "output-tokens": allowance.output_tokens,
        }
        for name, bucket in buckets.items():
            found |= _limit_headers(f"anthropic-ratelimit-{name}", bucket, now)
    return found


def _limit_headers(name: str, bucket: BucketState | None, now: float) -> dict[str, str]:
    if bucket is None:
        return {}
    reset = datetime.fromtimestamp(ceil(now + bucket.reset_seconds), UTC)
    return {
        f"{name}-limit": str(bucket.limit),
        f"{name}-remaining": str(bucket.remaining),
        f"{name}-reset": reset.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


_NAMES = {JsonType.ARRAY: "list", JsonType.OBJECT: "dictionary"}


class AnthropicErrorMessages:
    """Error messages in the words of `api.anthropic.com`."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        return invalid_request(f"The request body is not valid JSON: {reason}")

    def missing_member(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        return invalid_request("Field required", path)

    def wrong_type(self, path: Path, wanted: Sequence[JsonType], value: Any) -> ApiError:  # noqa: ARG002
        """Return the error for a value of the wrong type."""
        return invalid_request(
            f"Input should be a valid {' or '.join(_NAMES.get(kind, kind) for kind in wanted)}",
            path,
        )

    def invalid_choice(self, path: Path, choices: Sequence[str], value: str) -> ApiError:  # noqa: ARG002
        """Return the error for a text that is not an allowed value."""
        *most, last = (f"'{choice}'" for choice in choices)
        return invalid_request(f"Input should be {', '.join(most)}{' or ' if most else ''}{last}", path)

    def unexpected_member(self, path: Path) -> ApiError:
        """Return the error for an unknown member."""
        return invalid_request("Extra inputs are not permitted", path)


def invalid_request(message: str, path: Path = ()) -> ApiError:
    """Return an invalid request error; the path, if given, is the prefix of the message."""
    if not path:
        return ApiError(ApiErrorKind.INVALID_REQUEST, message)
    return ApiError(
        ApiErrorKind.INVALID_REQUEST,
        f"{dotted_path(path)}: {message}",
        param=bracketed_path(path),
    )
