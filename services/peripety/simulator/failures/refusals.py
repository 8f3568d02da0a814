"""Faults that are provider errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.failures.kinds import KINDS
from peripety.simulator.model import ApiError, ErrorKind, RetryForm, RetryHint
from peripety.simulator.scenario.model import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["embedded", "failure_of", "refusal"]

_ERRORS = {
    "auth_error": ErrorKind.AUTHENTICATION,
    "permission_denied": ErrorKind.PERMISSION,
    "not_found": ErrorKind.NOT_FOUND,
    "invalid_request": ErrorKind.INVALID_REQUEST,
    "conflict": ErrorKind.CONFLICT,
    "too_large": ErrorKind.TOO_LARGE,
    "rate_limit": ErrorKind.RATE_LIMIT,
    "out_of_credits": ErrorKind.BILLING,
    "overloaded": ErrorKind.OVERLOADED,
    "unavailable": ErrorKind.UNAVAILABLE,
    "server_error": ErrorKind.SERVER,
    "timeout": ErrorKind.TIMEOUT,
}


def refusal(failure: Failure, *, stream: bool) -> ApiError | None:
    """Return the error that a fault answers with; None if the fault is not an error.

    Args:
        failure: the fault.
        stream: True if the answer would be streamed.
    """
    if failure.type in _ERRORS:
        return _error(failure.type, failure.settings)
    if failure.type == "error_in_stream" and not stream:
        return embedded(failure)
    return None


def embedded(failure: Failure) -> ApiError:
    """Return the error that arrives inside an answer, for `error_in_200` and `error_in_stream`."""
    error = failure.settings["error"]
    settings = dict(KINDS[error].defaults)
    if failure.settings["message"] is not None:
        settings["message"] = failure.settings["message"]
    return _error(error, settings)


def failure_of(error: ApiError) -> Failure | None:
    """Return the fault that produces an error; None if no fault does."""
    name = next((name for name, kind in _ERRORS.items() if kind is error.kind), None)
    if name is None:
        return None
    told: dict[str, Any] = {"message": error.message, "param": error.param, "status": error.status}
    if error.retry is not None:
        told |= {"retry_after": error.retry.seconds, "form": error.retry.form.value}
    known = KINDS[name].defaults
    given = {key: value for key, value in told.items() if key in known and value is not None}
    return Failure(name, {**known, **given})


def _error(name: str, settings: Mapping[str, Any]) -> ApiError:
    after = settings.get("retry_after")
    return ApiError(
        _ERRORS[name],
        settings["message"],
        param=settings.get("param"),
        retry=None if after is None else RetryHint(after, RetryForm(settings["form"])),
        status=settings.get("status"),
    )
