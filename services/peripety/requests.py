"""Validation of request fields, with the same errors in every service."""

from __future__ import annotations

import re

from peripety.errors import FieldViolation, InvalidArgumentError

__all__ = ["UUID", "check_request_id", "refuse", "require"]

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The canonical form of a UUID: two spellings of one id would count as two requests."""


def refuse(field: str, reason: str) -> InvalidArgumentError:
    """Return the error of a request with one invalid field."""
    return InvalidArgumentError(f"{field} {reason}", violations=[FieldViolation(field, reason)])


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


def check_request_id(request_id: str) -> None:
    """Raise an error unless a request id is a UUID in canonical form.

    Raises:
        InvalidArgumentError: it is not.
    """
    reason = "must be a UUID, lower-case and with hyphens; make a new one for each request"
    require(UUID.fullmatch(request_id), ".request_id", reason)
