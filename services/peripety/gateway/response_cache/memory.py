"""Stored answers in the memory of this process: the ones used last, within a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.gateway.response_cache.answers import StoredAnswer

__all__ = ["ENTRY_BYTES", "MemoryAnswers"]

ENTRY_BYTES = 512
"""What an answer takes beside its own bytes: its key, and its place in the table."""


class MemoryAnswers:
    """The answers that were used last. How old they may get is decided by who asks.

    Thirty lines of our own are easier to hold to a bound of bytes than a library whose size function nobody
    checks, and they need no dependency.

    Args:
        max_bytes: the most that they take together; an answer that needs more is not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._answers: OrderedDict[str, StoredAnswer] = OrderedDict()
        self.size = 0

    def get(self, key: str) -> StoredAnswer | None:
        """Return an answer, which then is the one used last."""
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: str, answer: StoredAnswer) -> None:
        """Keep an answer in place of the one before; the ones used longest ago make room for it."""
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
        """Forget an answer, if there is one."""
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.size -= _size(answer)


def _size(answer: StoredAnswer) -> int:
    return len(answer.data) + ENTRY_BYTES
