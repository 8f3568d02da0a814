"""Durations, converted to turns.

They are ISO 8601 (`P7D`, `PT12H`) or short (`7d`, `12h`, `7d12h`, `30m`, `7d/12h`).
"""

from __future__ import annotations

import re

from peripety.sim._core import CoreError

__all__ = ["DEFAULT_TURN_MINUTES", "minutes", "turns"]

DEFAULT_TURN_MINUTES = 60

_ISO = re.compile(r"P(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?)?")
_SHORT = re.compile(r"()(?:([0-9]{1,6})d)?/?(?:([0-9]{1,6})h)?/?(?:([0-9]{1,6})m)?")
_UNIT_MINUTES = (7 * 24 * 60, 24 * 60, 60, 1)


def minutes(text: str) -> int:
    """Return the length of a duration in minutes.

    Raises:
        CoreError: `BAD_DURATION` if the text is not a duration.
    """
    match = _ISO.fullmatch(text) or _SHORT.fullmatch(text)
    if match is None or not any(match.groups()):
        raise CoreError(
            "BAD_DURATION", f"'{text[:32]}' is not a duration; write P7D, PT12H, 7d, 12h, 7d12h or 30m"
        )
    return sum(int(count) * unit for count, unit in zip(match.groups(), _UNIT_MINUTES, strict=True) if count)


def turns(duration: str | float, turn_minutes: int) -> int:
    """Convert a duration, or a number of turns, to turns: rounded up, at least 1."""
    if isinstance(duration, float):
        return int(duration)
    return max(1, -(-minutes(duration) // turn_minutes))
