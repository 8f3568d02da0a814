"""Memory tier of the response cache: an LRU cache with a bound in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.gateway.response_cache.answers import StoredAnswer

__all__ = ["ENTRY_BYTES", "MemoryAnswers"]

ENTRY_BYTES = 512
"""Overhead per answer: its key, and its slot in the table."""


class MemoryAnswers:
    """LRU cache of answers. The caller checks their age.

    Implemented here, because the bound in bytes needs a size function that a library would not verify, and
    because it avoids a dependency.

    Args:
        max_bytes: the maximum total size; a larger answer is not stored.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._answers: OrderedDict[str, StoredAnswer] = OrderedDict()
        self.size = 0

    def get(self, key: str) -> StoredAnswer | None:
        """Return an answer, and mark it as most recently used."""
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: str, answer: StoredAnswer) -> None:
        """Store an answer, replacing the previous one; evict the least recently used ones to make room."""
        self.drop(key)
        needed = _size(answer)
        if needed > self._max_bytes:
            return
        while self.size + needed > self._max_bytes:
            _, oldest = self._answers.popitem(last=False)
            self.size -= _size(oldest)
        self._answers[key] = answer
        self.size += needed

    def drop(self, key: str) -> None:
        """Remove an answer, if there is one."""
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.size -= _size(answer)


def _size(answer: StoredAnswer) -> int:
    return len(answer.data) + ENTRY_BYTES
