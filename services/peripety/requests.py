"""Validation of request fields, with the same errors in every service."""

from __future__ import annotations

import re

from peripety.errors import FieldViolation, InvalidArgumentError

__all__ = ["UUID", "check_request_id", "normalize_uuid", "refuse", "require"]

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Canonical form of a UUID. Idempotency compares request ids as text, so each id needs exactly one form."""

_UUID_IN_ANY_CASE = re.compile(UUID.pattern, re.IGNORECASE)


def refuse(field: str, reason: str) -> InvalidArgumentError:
    """Return the error of a request with one invalid field."""
    violation = FieldViolation(field, reason)
    return InvalidArgumentError(f"{violation.field} {reason}", violations=[violation])


def require(condition: object, field: str, reason: str) -> None:
    """Raise an error unless a condition holds.

    Args:
        condition: the condition.
        field: path of the field in the request.
        reason: problem and remedy.

    Raises:
        InvalidArgumentError: the condition does not hold.
    """
    if not condition:
        raise refuse(field, reason)


def normalize_uuid(text: str) -> str:
    """Return a UUID in its canonical form, lower-case; return any other text unchanged."""
    return text.lower() if _UUID_IN_ANY_CASE.fullmatch(text) else text


def check_request_id(request_id: str) -> None:
    """Raise unless a request id is a UUID in its canonical form, as `normalize_uuid` returns it.

    Raises:
        InvalidArgumentError: the id is not a UUID.
    """
    require(
        UUID.fullmatch(request_id),
        "request_id",
        "must be a UUID with hyphens; make a new one for each request",
    )
