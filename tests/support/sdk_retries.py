"""What SDKs are asked to see what they do of their own accord when no answer comes, or half of one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["RULES", "noted_pauses"]

_KINDS = (
    "conflict",
    "invalid_request",
    "out_of_credits",
    "overloaded",
    "permission_denied",
    "too_large",
    "unavailable",
)

RULES = """
[[responses]]
pattern = { type = "exact", text = "refused twice" }
response = "At last."
failure = { type = "overloaded", times = 2 }

[[responses]]
pattern = { type = "exact", text = "in seconds" }
response = "At last."
failure = { type = "rate_limit", retry_after = 3, times = 1 }

[[responses]]
pattern = { type = "exact", text = "in milliseconds" }
response = "At last."
failure = { type = "rate_limit", retry_after = 1.25, form = "milliseconds", times = 1 }

[[responses]]
pattern = { type = "exact", text = "at a date" }
response = "At last."
failure = { type = "rate_limit", retry_after = 40, form = "date", times = 1 }

[[responses]]
pattern = { type = "exact", text = "cut" }
response = "one two three"
failure = { type = "missing_end" }

[[responses]]
pattern = { type = "exact", text = "broken" }
response = "one two three"
failure = { type = "error_in_stream", after_chunks = 2 }
""" + "".join(
    f"""
[[responses]]
pattern = {{ type = "glob", pattern = "fails: {kind}*" }}
failure = {{ type = "{kind}" }}
"""
    for kind in _KINDS
)
"""Rules of a scenario file; a prompt `fails: KIND` fails that way."""


def noted_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long an SDK wants to wait before each further attempt, in seconds; it does not wait."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found
