"""What is wrong with a request, said the same way by every service."""

from __future__ import annotations

import re

from peripety.errors import FieldViolation, InvalidArgumentError

__all__ = ["UUID", "check_request_id", "refuse", "require"]

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The one way a UUID is written: two spellings of one id would be two requests to whoever compares them."""


def refuse(field: str, reason: str) -> InvalidArgumentError:
    """The error of a request with one wrong field."""
    return InvalidArgumentError(f"{field} {reason}", violations=[FieldViolation(field, reason)])


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


def check_request_id(request_id: str) -> None:
    """Refuse a request whose id is no UUID in its canonical form.

    Raises:
        InvalidArgumentError: it is none.
    """
    reason = "must be a UUID, lower-case and with hyphens; make a new one for each request"
    require(UUID.fullmatch(request_id), ".request_id", reason)
