"""Errors of Google APIs: a code, a canonical status, and details."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.simulator.model import ErrorKind
from peripety.simulator.wire.gemini.proto import BadFieldsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.simulator.model import ApiError

__all__ = ["error_body", "status_code"]

_TYPES = "type.googleapis.com/google.rpc."
_SERVICE = "generativelanguage.googleapis.com"
_LIMITS_PAGE = "https://ai.google.dev/gemini-api/docs/rate-limits"


class _Status(NamedTuple):
    code: int
    name: str


# Google reports a wrong key as an invalid argument, and a depleted account as an exhausted resource.
_STATUSES = {
    ErrorKind.INVALID_REQUEST: _Status(400, "INVALID_ARGUMENT"),
    ErrorKind.AUTHENTICATION: _Status(400, "INVALID_ARGUMENT"),
    ErrorKind.TOO_LARGE: _Status(400, "INVALID_ARGUMENT"),
    ErrorKind.PERMISSION: _Status(403, "PERMISSION_DENIED"),
    ErrorKind.NOT_FOUND: _Status(404, "NOT_FOUND"),
    ErrorKind.METHOD_NOT_ALLOWED: _Status(405, "UNIMPLEMENTED"),
    ErrorKind.CONFLICT: _Status(409, "ABORTED"),
    ErrorKind.BILLING: _Status(429, "RESOURCE_EXHAUSTED"),
    ErrorKind.RATE_LIMIT: _Status(429, "RESOURCE_EXHAUSTED"),
    ErrorKind.SERVER: _Status(500, "INTERNAL"),
    ErrorKind.UNAVAILABLE: _Status(503, "UNAVAILABLE"),
    ErrorKind.OVERLOADED: _Status(503, "UNAVAILABLE"),
    ErrorKind.TIMEOUT: _Status(504, "DEADLINE_EXCEEDED"),
}


def status_code(error: ApiError) -> int:
    """Return the HTTP status of an error."""
    return _STATUSES[error.kind].code


def error_body(error: ApiError) -> dict[str, Any]:
    """Return an error body; the retry delay is in the body and not in a header."""
    status = _STATUSES[error.kind]
    body: dict[str, Any] = {"code": status.code, "message": error.message, "status": status.name}
    if details := list(_details(error)):
        body["details"] = details
    return {"error": body}


def _details(error: ApiError) -> Iterator[dict[str, Any]]:
    match error.kind:
        case ErrorKind.AUTHENTICATION:
            metadata = {"service": _SERVICE}
            yield _detail("ErrorInfo", reason="API_KEY_INVALID", domain="googleapis.com", metadata=metadata)
            yield _detail("LocalizedMessage", locale="en-US", message=error.message)
        case ErrorKind.RATE_LIMIT:
            yield _detail("QuotaFailure", violations=[_quota(error)])
            link = {"description": "Learn more about Gemini API quotas", "url": _LIMITS_PAGE}
            yield _detail("Help", links=[link])
    if isinstance(error, BadFieldsError):
        violations = [
            ({"field": field} if field else {}) | {"description": description}
            for field, description in error.violations
        ]
        yield _detail("BadRequest", fieldViolations=violations)
    if error.retry is not None:
        yield _detail("RetryInfo", retryDelay=f"{error.retry.seconds:.9g}s")


def _detail(type_name: str, **fields: Any) -> dict[str, Any]:
    return {"@type": _TYPES + type_name, **fields}


def _quota(error: ApiError) -> dict[str, Any]:
    if "token" in error.message:
        metric = "generate_content_paid_tier_input_token_count"
        quota = "GenerateContentPaidTierInputTokensPerModelPerMinute"
    else:
        metric, quota = "generate_content_paid_tier_requests", "GenerateRequestsPerMinutePerProjectPerModel"
    return {"quotaMetric": f"{_SERVICE}/{metric}", "quotaId": quota}
