"""What environment variables hold is told to nobody, even where a command writes it out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHORTEST", "Hidden", "is_secret"]

SHORTEST = 6
"""Characters of a value that tells something: a shorter one is a switch, and its letters are everywhere."""

_SECRET = re.compile(r"secret|credential|passw|token|key|private|auth", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a variable says by its name that it is secret."""
    return _SECRET.search(name) is not None


class Hidden:
    """Puts the names of variables in the place of what they hold.

    Args:
        environment: the variables; short values count only where the name says that they are secret.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = {
            value.encode(errors="surrogateescape"): name.encode()
            for name, value in environment.items()
            if len(value) >= SHORTEST or (value and is_secret(name))
        }
        self._names = names
        # A longer one first, which may hold a shorter one.
        longest = sorted(names, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest))) if names else None

    def out_of(self, text: bytes) -> bytes:
        """A text without what the variables hold."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: b"$" + self._names[found[0]], text)
