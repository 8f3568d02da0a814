"""Redaction of environment variables in the output of commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHORTEST", "Hidden", "is_secret"]

SHORTEST = 6
"""Minimum length of a redacted value; shorter values are usually switches, and occur everywhere."""

_SECRET = re.compile(r"secret|credential|passw|token|key|private|auth", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Return True if the name of a variable indicates a secret."""
    return _SECRET.search(name) is not None


class Hidden:
    """Redactor that replaces values of variables by their names.

    Args:
        environment: the variables; short values count only if the name indicates a secret.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = {
            value.encode(errors="surrogateescape"): name.encode()
            for name, value in environment.items()
            if len(value) >= SHORTEST or (value and is_secret(name))
        }
        self._names = names
        # Longer values come first, because they may contain shorter ones.
        longest = sorted(names, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest))) if names else None

    def out_of(self, text: bytes) -> bytes:
        """Return a text without the values of the variables."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: b"$" + self._names[found[0]], text)
