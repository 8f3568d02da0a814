"""The time that is stored and shown."""

from __future__ import annotations

import time

__all__ = ["microseconds_now"]


def microseconds_now() -> int:
    """The wall clock, in microseconds since 1970."""
    return time.time_ns() // 1000
