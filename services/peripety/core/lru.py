"""LRU cache, bounded by entries or by total size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from cachetools import LRUCache

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """LRU cache for one event loop; a lock is needed where threads share it.

    Args:
        max_size: the maximum number of values, or their maximum total size.
        size_of: returns the size of a value; every value counts 1 when absent.
    """

    def __init__(self, max_size: int, size_of: Callable[[V], int] | None = None) -> None:
        self._values: LRUCache[K, V] = LRUCache(max_size, getsizeof=size_of)

    @property
    def size(self) -> int:
        """The number of values, or their total size."""
        return int(self._values.currsize)

    def get(self, key: K) -> V | None:
        """Return a value and mark it as most recently used; None if it is absent."""
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Store a value, replacing the previous one; a value larger than the cache is not stored."""
        self._values.pop(key, None)
        if self._values.getsizeof(value) <= self._values.maxsize:
            self._values[key] = value

    def put_if_absent(self, key: K, value: V) -> V:
        """Return the cached value, or store and return the given one."""
        cached = self._values.get(key)
        if cached is not None:
            return cached
        self.put(key, value)
        return value

    def remove(self, key: K) -> None:
        """Remove a value, if there is one."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Remove all values."""
        self._values.clear()
