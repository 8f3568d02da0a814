"""How many documents of a batch may be under way, and how many are checked together."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from peripety.scenarios.batch.model import Document

__all__ = ["Window", "chunks"]

# Beyond that nothing is saved by checking documents together, and nobody is to wait long for the others.
_CHUNK_DOCUMENTS = 64
_CHUNK_BYTES = 256 * 1024

_MOST_DOCUMENTS = 1_024
_MOST_BYTES = 8 * 1024 * 1024


T = TypeVar("T")


def chunks(
    documents: Iterable[Document[T]], is_wanted: Callable[[], bool] = lambda: False
) -> Iterator[tuple[list[Document[tuple[T, int]]], int]]:
    """Put documents together that are to be checked together.

    Args:
        documents: the documents.
        is_wanted: whether what is there is to be checked without waiting for more.

    Yields:
        Documents, each under its name and its size in bytes, and the size of them all.
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
