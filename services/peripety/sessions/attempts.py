"""Ids of attempts to play a turn, which tell where the attempt began.

An attempt that fails leaves nothing behind but what its followers heard, and its sequences are used again.
Who comes back with one of them would otherwise go on after an event that was never told.
"""

from __future__ import annotations

import uuid

from peripety.requests import UUID

__all__ = ["began_after", "new_attempt_id"]

# A UUID of version 8, whose first 48 bits are ours: the sequence. The rest is random.
_RANDOM = (1 << 76) - 1
_VERSION = 8 << 76
_SEQUENCE_SHIFT = 80


def new_attempt_id(after: int) -> str:
    """The id of an attempt whose events come after a sequence."""
    return str(uuid.UUID(int=(after << _SEQUENCE_SHIFT) | _VERSION | (uuid.uuid4().int & _RANDOM)))


def began_after(attempt_id: str) -> int | None:
    """The sequence that `new_attempt_id` was given; None when the id is not from there."""
    if not UUID.fullmatch(attempt_id):
        return None
    value = uuid.UUID(attempt_id).int
    return value >> _SEQUENCE_SHIFT if (value ^ _VERSION) >> 76 & 0xF == 0 else None
