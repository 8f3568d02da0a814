"""Back-pressure of a batch: limits on pending documents, and the size of chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from peripety.scenarios.batch.model import Document

__all__ = ["Window", "chunks"]

# A larger chunk saves nothing, and delays the first verdicts.
_CHUNK_DOCUMENTS = 64
_CHUNK_BYTES = 256 * 1024

_MOST_DOCUMENTS = 1_024
_MOST_BYTES = 8 * 1024 * 1024


T = TypeVar("T")


def chunks(
    documents: Iterable[Document[T]], is_wanted: Callable[[], bool] = lambda: False
) -> Iterator[tuple[list[Document[tuple[T, int]]], int]]:
    """Group documents into chunks for joint validation.

    Args:
        documents: the documents.
        is_wanted: returns True if the current chunk should be submitted early.

    Yields:
        Documents, each with its name and its size in bytes, and the total size.
    """
    chunk: list[Document[tuple[T, int]]] = []
    total = 0
    for name, content in documents:
        size = len(content) if isinstance(content, bytes) else 0
        chunk.append(((name, size), content))
        total += size
        if len(chunk) == _CHUNK_DOCUMENTS or total >= _CHUNK_BYTES or is_wanted():
            yield chunk, total
            chunk, total = [], 0
    if chunk:
        yield chunk, total


class Window:
    """Counter of pending documents and bytes, which bounds memory.

    The last entry may exceed the limits. It is not thread-safe; callers synchronize.
    """

    def __init__(self) -> None:
        self._documents = 0
        self._bytes = 0

    @property
    def has_room(self) -> bool:
        """Return True if another document may enter."""
        return self._documents < _MOST_DOCUMENTS and self._bytes < _MOST_BYTES

    def enter(self, documents: int, size: int) -> None:
        """Count entering documents and bytes."""
        self._documents += documents
        self._bytes += size

    def leave(self, documents: int, size: int) -> None:
        """Release documents and bytes."""
        self.enter(-documents, -size)
