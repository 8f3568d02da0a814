"""Model of a provider's prompt cache: the entries that are assumed to exist, and their expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from peripety.gateway.prompt_cache.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Entries", "Entry"]

_MAX_ENTRIES = 100_000
"""About 20 MB of keys and times."""


class Entry(NamedTuple):
    """A cached prefix.

    Attributes:
        key: digest of the prefix.
        seconds: lifetime after each use.
        tokens: size of the prefix; 0 where that does not matter.
    """

    key: bytes
    seconds: float
    tokens: int = 0


class Entries:
    """All prefixes assumed to be cached, by key, in LRU order.

    Args:
        now: monotonic clock, in seconds.
        most: the maximum number of entries.
    """

    def __init__(self, now: Callable[[], float], most: int = _MAX_ENTRIES) -> None:
        self._now = now
        self._lives: Recent[bytes, tuple[float, float]] = Recent(most)

    def life(self, key: bytes) -> float | None:
        """Return the lifetime of an entry in seconds; None if it does not exist or has expired."""
        expires, seconds = self._lives.get(key) or (0.0, None)
        return seconds if self._now() < expires else None

    def keep(self, entry: Entry, since: float) -> None:
        """Add an entry with its start time; an existing entry with a later expiry is left unchanged."""
        expires = since + entry.seconds
        known = self._lives.get(entry.key)
        if known is None or known[0] < expires:
            self._lives.put(entry.key, (expires, entry.seconds))

    def forget(self, key: bytes) -> None:
        """Remove an entry."""
        self._lives.drop(key)
