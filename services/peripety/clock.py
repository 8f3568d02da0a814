"""Wall clock for stored and displayed times."""

from __future__ import annotations

import time

__all__ = ["microseconds_now"]


def microseconds_now() -> int:
    """Return the wall-clock time in microseconds since 1970."""
    return time.time_ns() // 1000
