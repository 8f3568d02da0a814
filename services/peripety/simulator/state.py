"""Where the simulator keeps what it has to remember: bounded tables of JSON values.

Everything that outlives a request lives in a `Table`, so that forking, resetting and keeping state in a file
are each written once. A value is never changed in place; it is replaced.
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
    """A mapping from text to JSON values that forgets what was unused longest, and knows what changed.

    Args:
        limit: how many entries are remembered.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._entries: OrderedDict[str, Any] = OrderedDict()
        self._changed: set[str] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys, from the one that was unused longest."""
        return iter(self._entries)

    def get(self, key: str) -> Any:
        """The value, or None; looking counts as use."""
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
        """Forget everything."""
        if self._changed is not None:
            self._changed.update(self._entries)
        self._entries.clear()

    def fork(self) -> Table:
        """An independent copy, which is not watched."""
        copy = Table(self._limit)
        copy._entries = self._entries.copy()
        return copy

    def watch(self, entries: dict[str, Any]) -> None:
        """Take over what was kept elsewhere, oldest first, and note changes from now on."""
        for key, value in entries.items():
            self.put(key, value)
        self._changed = set()

    def changes(self) -> dict[str, Any]:
        """What has changed since this was last asked: values by key, None for what is gone."""
        changed = {key: self._entries.get(key) for key in sorted(self._changed or ())}
        if self._changed:
            self._changed.clear()
        return changed


class Tables:
    """All tables of a simulator, by name; one that is new begins empty.

    Args:
        store: where they are kept between processes; None forgets them with this one.
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
        """An independent copy that is kept nowhere."""
        copy = Tables()
        copy._tables = {name: table.fork() for name, table in self._tables.items()}
        return copy

    def clear(self) -> None:
        """Forget everything."""
        for table in self._tables.values():
            table.clear()

    def save(self) -> None:
        """Keep what has changed since the last time, all of it or nothing."""
        if self._store is not None:
            self._store.save({name: table.changes() for name, table in self._tables.items()})

    def close(self) -> None:
        """Let go of the place they are kept in."""
        if self._store is not None:
            self._store.close()
