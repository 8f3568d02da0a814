"""Bounded state tables of the simulator, with JSON values.

All state that outlives a request is in a `Table`, so that fork, reset and persistence are implemented once.
Values are never changed in place; they are replaced.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.simulator.store import Store

__all__ = ["Table", "Tables"]

LIMIT = 1_000_000


class Table:
    """LRU table of JSON values that tracks its changes.

    Args:
        limit: maximum number of entries.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._entries: OrderedDict[str, Any] = OrderedDict()
        self._changed: set[str] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys, least recently used first."""
        return iter(self._entries)

    def get(self, key: str) -> Any:
        """Return the value or None; marks the entry as used."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: str, value: Any) -> None:
        """Set a value; None removes it."""
        if self._changed is not None:
            self._changed.add(key)
        if value is None:
            self._entries.pop(key, None)
            return
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            forgotten, _ = self._entries.popitem(last=False)
            if self._changed is not None:
                self._changed.add(forgotten)

    def clear(self) -> None:
        """Remove all entries."""
        if self._changed is not None:
            self._changed.update(self._entries)
        self._entries.clear()

    def fork(self) -> Table:
        """Return an independent copy that does not track changes."""
        copy = Table(self._limit)
        copy._entries = self._entries.copy()
        return copy

    def watch(self, entries: dict[str, Any]) -> None:
        """Load stored entries, oldest first, and track changes from now on."""
        for key, value in entries.items():
            self.put(key, value)
        self._changed = set()

    def changes(self) -> dict[str, Any]:
        """Return and clear the changes since the last call: values by key, None for removed keys."""
        changed = {key: self._entries.get(key) for key in sorted(self._changed or ())}
        if self._changed:
            self._changed.clear()
        return changed


class Tables:
    """All tables of a simulator, by name; created empty on first use.

    Args:
        store: the persistent storage; None for memory only.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._tables: dict[str, Table] = {}
        for name, entries in (store.load() if store else {}).items():
            self[name].watch(entries)

    def __getitem__(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = Table()
            if self._store is not None:
                table.watch({})
        return table

    def fork(self) -> Tables:
        """Return an independent copy in memory only."""
        copy = Tables()
        copy._tables = {name: table.fork() for name, table in self._tables.items()}
        return copy

    def clear(self) -> None:
        """Remove all entries of all tables."""
        for table in self._tables.values():
            table.clear()

    def save(self) -> None:
        """Store the changes since the last save, as one transaction."""
        if self._store is not None:
            self._store.save({name: table.changes() for name, table in self._tables.items()})

    def close(self) -> None:
        """Close the storage."""
        if self._store is not None:
            self._store.close()
