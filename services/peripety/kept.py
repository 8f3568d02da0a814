"""What took long to make and never changes, kept while it is used."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by their names, as many as were used last. Of one event loop.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, T] = OrderedDict()

    def find(self, name: str) -> T | None:
        """The value of a name, when it is at hand."""
        if name in self._values:
            self._values.move_to_end(name)
        return self._values.get(name)

    def keep(self, name: str, value: T) -> T:
        """Keep a value; the one to use, which may have been here already."""
        self._values.setdefault(name, value)
        self._values.move_to_end(name)
        if len(self._values) > self._most:
            self._values.popitem(last=False)
        return self._values[name]
