"""Problem documents (RFC 9457) of errors.

One table maps the kinds of errors to HTTP statuses, as `peripety.rpc.status` does to gRPC statuses. Code,
message, details and violations are those of the error, so a client finds the same reason over either
protocol.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from peripety.core import call_context
from peripety.errors import ErrorKind, PeripetyError, hide_internal_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import HTTPConnection

MEDIA_TYPE = "application/problem+json"

STATUSES: dict[ErrorKind, int] = {
    ErrorKind.INVALID_ARGUMENT: 400,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.ALREADY_EXISTS: 409,
    ErrorKind.FAILED_PRECONDITION: 409,
    ErrorKind.CONFLICT: 409,
    ErrorKind.RESOURCE_EXHAUSTED: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.DEADLINE: 504,
    ErrorKind.UNSUPPORTED: 501,
    ErrorKind.INTERNAL: 500,
}
"""HTTP statuses by kind of error."""

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
        "code": {"type": "string", "description": "The error reason."},
        "violations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "reason": {"type": "string"}},
                "required": ["field", "reason"],
            },
        },
        "details": {"type": "object", "additionalProperties": {"type": "string"}},
        "retry_after": {"type": "number", "description": "Seconds to wait before a repetition."},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
"""JSON Schema of a problem document, for OpenAPI."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
"""OpenAPI description of every response that is not a success."""

_STATUSES_BY_CODE = {"BODY_TOO_LARGE": 413}


def to_problem(error: Exception, status: int | None = None) -> dict[str, Any]:
    """Return the problem document of an error; an unexpected error shows only its request id.

    Args:
        error: the error.
        status: the HTTP status; by default that of the kind of the error.
    """
    request_id = call_context.request_id() or ""
    public = hide_internal_error(error, f"request id {request_id}", {"request_id": request_id})
    problem: dict[str, Any] = {
        "type": f"urn:peripety:error:{public.code}",
        "title": public.code.replace("_", " ").capitalize(),
        "status": status or _STATUSES_BY_CODE.get(public.code) or STATUSES[public.kind],
        "detail": public.message,
        "code": public.code,
    }
    if public.violations:
        problem["violations"] = [{"field": one.field, "reason": one.reason} for one in public.violations]
    if public.details:
        problem["details"] = dict(public.details)
    if public.retry_after is not None:
        problem["retry_after"] = public.retry_after
    return problem


def problem_response(
    error: Exception, status: int | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the response of a failed request.

    Args:
        error: the error.
        status: the HTTP status; by default that of the kind of the error.
        headers: further headers.
    """
    problem = to_problem(error, status)
    headers = dict(headers or {})
    if "retry_after" in problem:
        headers["retry-after"] = str(max(1, math.ceil(problem["retry_after"])))
    return JSONResponse(problem, problem["status"], headers, MEDIA_TYPE)


async def handle_error(_request: HTTPConnection, error: Exception) -> JSONResponse:
    """Return the response of a request whose handler raised `PeripetyError`."""
    assert isinstance(error, PeripetyError)  # noqa: S101 - registered for this class only
    return problem_response(error)
