"""Attempt ids of turns, which encode the sequence where the attempt began.

A failed attempt leaves nothing behind except the events that watchers received, and its sequences are reused.
A client that resumes with such a sequence would continue after an event that does not exist; the id detects
this.
"""

from __future__ import annotations

import uuid

from peripety.requests import UUID

__all__ = ["began_after", "new_attempt_id"]

# A UUID of version 8: its first 48 bits are the sequence, the rest is random.
_RANDOM = (1 << 76) - 1
_VERSION = 8 << 76
_SEQUENCE_SHIFT = 80


def new_attempt_id(after: int) -> str:
    """Return the id of an attempt whose events come after a sequence."""
    return str(uuid.UUID(int=(after << _SEQUENCE_SHIFT) | _VERSION | (uuid.uuid4().int & _RANDOM)))


def began_after(attempt_id: str) -> int | None:
    """Return the sequence passed to `new_attempt_id`, or None if the id was made elsewhere."""
    if not UUID.fullmatch(attempt_id):
        return None
    value = uuid.UUID(attempt_id).int
    return value >> _SEQUENCE_SHIFT if (value ^ _VERSION) >> 76 & 0xF == 0 else None
