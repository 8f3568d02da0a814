"""What is wrong with a request, said the same way by every service."""

from __future__ import annotations

import re

from peripety.errors import FieldViolation, InvalidArgumentError

__all__ = ["UUID", "check_request_id", "normalize_uuid", "refuse", "require"]

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Canonical form of a UUID. Idempotency compares request ids as text, so each id needs exactly one form."""

_UUID_IN_ANY_CASE = re.compile(UUID.pattern, re.IGNORECASE)


def refuse(field: str, reason: str) -> InvalidArgumentError:
    """The error of a request with one wrong field."""
    violation = FieldViolation(field, reason)
    return InvalidArgumentError(f"{violation.field} {reason}", violations=[violation])


def require(condition: object, field: str, reason: str) -> None:
    """Refuse a request unless a condition holds.

    Args:
        condition: what has to be true.
        field: path in the request of what is wrong otherwise.
        reason: what is wrong with it then, and what to do.

    Raises:
        InvalidArgumentError: it does not hold.
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
