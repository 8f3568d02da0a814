"""Headers and errors of all OpenAI operations."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ErrorKind
from peripety.simulator.wire.base import Document
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.retrying import retry_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.model import ApiError
    from peripety.simulator.truth.limits import Allowance, Bucket

__all__ = ["Shape", "details", "document", "duration", "error_document", "headers", "shape"]


@dataclass(frozen=True, slots=True)
class Shape:
    """The format of a kind of error."""

    status: int
    type: str
    code: str | None = None


_SHAPES = {
    ErrorKind.INVALID_REQUEST: Shape(400, "invalid_request_error"),
    ErrorKind.AUTHENTICATION: Shape(401, "invalid_request_error", "invalid_api_key"),
    ErrorKind.BILLING: Shape(429, "insufficient_quota", "insufficient_quota"),
    ErrorKind.PERMISSION: Shape(403, "invalid_request_error"),
    ErrorKind.NOT_FOUND: Shape(404, "invalid_request_error"),
    ErrorKind.METHOD_NOT_ALLOWED: Shape(405, "invalid_request_error", "method_not_supported"),
    ErrorKind.CONFLICT: Shape(409, "invalid_request_error"),
    ErrorKind.TOO_LARGE: Shape(413, "invalid_request_error", "request_too_large"),
    ErrorKind.RATE_LIMIT: Shape(429, "requests", "rate_limit_exceeded"),
    ErrorKind.SERVER: Shape(500, "server_error"),
    ErrorKind.UNAVAILABLE: Shape(503, "service_unavailable_error"),
    ErrorKind.OVERLOADED: Shape(503, "service_unavailable_error", "server_is_overloaded"),
    ErrorKind.TIMEOUT: Shape(504, "server_error", "timeout"),
}


def shape(error: ApiError) -> Shape:
    """Return the format of an error; its own code overrides the default one."""
    usual = _SHAPES[error.kind]
    limited_by_tokens = error.kind is ErrorKind.RATE_LIMIT and "tokens per min" in error.message
    return Shape(usual.status, "tokens" if limited_by_tokens else usual.type, error.code or usual.code)


def details(error: ApiError, looks: Shape) -> dict[str, Any]:
    """Return the error object."""
    return {"message": error.message, "type": looks.type, "param": error.param, "code": looks.code}


def error_document(error: ApiError, looks: Shape, now: float) -> Document:
    """Return an error response."""
    body = compact({"error": details(error, looks)})
    return Document(looks.status, body, retry_headers(error.retry, now))


def document(value: Any) -> Document:
    """Return a JSON value as a response."""
    return Document(200, compact(value))


def headers(request_id: str, allowance: Allowance | None) -> Mapping[str, str]:
    """Return the headers of every answer."""
    found = {"x-request-id": f"req_{request_id}", "openai-version": "2020-10-01"}
    if allowance is not None:
        found |= _limits("requests", allowance.requests) | _limits("tokens", allowance.tokens)
    return found


def _limits(name: str, bucket: Bucket | None) -> dict[str, str]:
    if bucket is None:
        return {}
    return {
        f"x-ratelimit-limit-{name}": str(bucket.limit),
        f"x-ratelimit-remaining-{name}": str(bucket.remaining),
        f"x-ratelimit-reset-{name}": duration(bucket.reset_seconds),
    }


def duration(seconds: float) -> str:
    """Format a duration as `17ms`, `1.5s`, `6m0s` or `1h0m0s`, rounded up."""
    milliseconds = ceil(seconds * 1000)
    if milliseconds < 1000:  # noqa: PLR2004 - a second
        return f"{milliseconds}ms"
    whole, rest = divmod(milliseconds, 1000)
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{whole}.{rest:03}".rstrip("0").rstrip(".") + "s"
    if minutes or hours:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text
