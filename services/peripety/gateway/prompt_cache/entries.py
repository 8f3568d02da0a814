"""What is believed to be cached, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from peripety.gateway.prompt_cache.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Entries", "Entry"]

_MAX_ENTRIES = 100_000
"""About 20 MB of keys and times."""


class Entry(NamedTuple):
    """A prefix that is cached.

    Attributes:
        key: what it is known by.
        seconds: for how long it is kept after each use.
        tokens: how many tokens it has; 0 when that does not matter.
    """

    key: bytes
    seconds: float
    tokens: int = 0


class Entries:
    """All prefixes that are believed to be cached, by key. Those used longest ago are forgotten first.

    Args:
        now: seconds on a clock that never goes back.
        most: how many are remembered.
    """

    def __init__(self, now: Callable[[], float], most: int = _MAX_ENTRIES) -> None:
        self._now = now
        self._lives: Recent[bytes, tuple[float, float]] = Recent(most)

    def life(self, key: bytes) -> float | None:
        """Return for how many seconds an entry is kept after each use; None when it is not there any more."""
        expires, seconds = self._lives.get(key) or (0.0, None)
        return seconds if self._now() < expires else None

    def keep(self, entry: Entry, since: float) -> None:
        """Keep an entry from a time on; one that is kept for longer already stays as it is."""
        expires = since + entry.seconds
        known = self._lives.get(entry.key)
        if known is None or known[0] < expires:
            self._lives.put(entry.key, (expires, entry.seconds))

    def forget(self, key: bytes) -> None:
        """Take an entry for gone."""
        self._lives.drop(key)
