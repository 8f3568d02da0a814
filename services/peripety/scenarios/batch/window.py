"""How many documents of a batch may be under way, and how many are checked together."""

from __future__ import annotations

__all__ = ["CHUNK_BYTES", "CHUNK_DOCUMENTS", "Window"]

CHUNK_DOCUMENTS = 64
"""Most documents that are checked together; beyond that nothing is saved."""

CHUNK_BYTES = 256 * 1024
"""A chunk that has so many is full: nobody is to wait long for the others in it."""

_MOST_DOCUMENTS = 1_024
_MOST_BYTES = 8 * 1024 * 1024


class Window:
    """Counts what was taken in and not yet given out, so that no more is taken in than memory holds.

    What is taken in last may go beyond the limits. Its callers see to it that one thread at a time uses it.
    """

    def __init__(self) -> None:
        self._documents = 0
        self._bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether more may be taken in."""
        return self._documents < _MOST_DOCUMENTS and self._bytes < _MOST_BYTES

    def enter(self, documents: int, size: int) -> None:
        """Count documents that were taken in, and their bytes."""
        self._documents += documents
        self._bytes += size

    def leave(self, documents: int, size: int) -> None:
        """Count them out again."""
        self.enter(-documents, -size)
