"""LRU cache of immutable values that are expensive to create."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """LRU cache of values by name, for one event loop.

    Args:
        most: the maximum number of values.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, T] = OrderedDict()

    def find(self, name: str) -> T | None:
        """Return a cached value; None if it is absent."""
        if name in self._values:
            self._values.move_to_end(name)
        return self._values.get(name)

    def keep(self, name: str, value: T) -> T:
        """Store a value; return the cached one, which may be an earlier one."""
        self._values.setdefault(name, value)
        self._values.move_to_end(name)
        if len(self._values) > self._most:
            self._values.popitem(last=False)
        return self._values[name]
