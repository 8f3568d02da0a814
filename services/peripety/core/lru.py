"""LRU cache, by entries or bytes (on cachetools).

LRU table of bounded size.

LRU cache of immutable values that are expensive to create.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruTable(Generic[K, V]):
    """LRU table.

    Args:
        max_entries: the maximum number of values.
    """

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return a value, and mark it as most recently used."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Store a value, replacing the previous one."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._max_entries:
            self._values.popitem(last=False)

    def remove(self, key: K) -> None:
        """Remove a value, if there is one."""
        self._values.pop(key, None)


T = TypeVar("T")


class LruCache(Generic[T]):
    """LRU cache of values by name, for one event loop.

    Args:
        max_entries: the maximum number of values.
    """

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._values: OrderedDict[str, T] = OrderedDict()

    def get(self, name: str) -> T | None:
        """Return a cached value; None if it is absent."""
        if name in self._values:
            self._values.move_to_end(name)
        return self._values.get(name)

    def put(self, name: str, value: T) -> T:
        """Store a value; return the cached one, which may be an earlier one."""
        self._values.setdefault(name, value)
        self._values.move_to_end(name)
        if len(self._values) > self._max_entries:
            self._values.popitem(last=False)
        return self._values[name]
