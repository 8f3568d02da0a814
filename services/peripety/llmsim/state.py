"""State of the scripted LLM that outlives a request: bounded tables, in memory or in a file.

All such state is in a `StateTable`, so that copies, resets and persistence are implemented once for turn
sequences, caches, rate limits and bills.

Invariants:

- Values are JSON and are never changed in place; they are replaced. A fork therefore copies only the maps,
  and a fork and its origin cannot affect each other.
- A table is bounded. Beyond its limit, the least recently used entry is forgotten, so a long-lived server
  does not grow with the number of conversations.
- A table tracks its changed keys only if there is a file. One save writes the changes of all tables in one
  transaction, so the file never contains half a request.

The file is a SQLite database. An application id in its header protects databases of other programs. A
second process fails at once, because two processes would overwrite each other's state. A row that is
written again gets a new number, so a restart loads the entries in the order of their last change. Reading
an entry counts as use in memory only; writing each use to the file would cost a transaction per request.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


MAX_ENTRIES = 1_000_000


class StateTable:
    """LRU table of JSON values that tracks its changes.

    Args:
        limit: maximum number of entries.
    """

    def __init__(self, limit: int = MAX_ENTRIES) -> None:
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

    def fork(self) -> StateTable:
        """Return an independent copy that does not track changes."""
        copy = StateTable(self._limit)
        copy._entries = self._entries.copy()
        return copy

    def load(self, entries: dict[str, Any]) -> None:
        """Load stored entries, oldest first, and track changes from now on."""
        for key, value in entries.items():
            self.put(key, value)
        self._changed = set()

    def take_changes(self) -> dict[str, Any]:
        """Return and clear the changes since the last call: values by key, None for removed keys."""
        changed = {key: self._entries.get(key) for key in sorted(self._changed or ())}
        if self._changed:
            self._changed.clear()
        return changed


class StateTables:
    """All tables of a simulator, by name; created empty on first use.

    Args:
        store: the persistent storage; None for memory only.
    """

    def __init__(self, store: StateFile | None = None) -> None:
        self._store = store
        self._tables: dict[str, StateTable] = {}
        for name, entries in (store.load() if store else {}).items():
            self[name].load(entries)

    def __getitem__(self, name: str) -> StateTable:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = StateTable()
            if self._store is not None:
                table.load({})
        return table

    def fork(self) -> StateTables:
        """Return an independent copy in memory only."""
        copy = StateTables()
        copy._tables = {name: table.fork() for name, table in self._tables.items()}
        return copy

    def clear(self) -> None:
        """Remove all entries of all tables."""
        for table in self._tables.values():
            table.clear()

    def save(self) -> None:
        """Store the changes since the last save, as one transaction."""
        if self._store is not None:
            self._store.save({name: table.take_changes() for name, table in self._tables.items()})

    def close(self) -> None:
        """Close the storage."""
        if self._store is not None:
            self._store.close()


_APPLICATION_ID = 0x7065_7369  # "pesi", in the file's header
_LOCK_TIMEOUT = 1.0  # seconds: the process that holds the file may be about to exit
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (name, key)
)
"""


class StateFile:
    """Tables in a SQLite file.

    Args:
        path: the file; created if it does not exist.

    Raises:
        FailedPreconditionError: the file cannot be used or is not a state file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._database = sqlite3.connect(
                path,
                timeout=_LOCK_TIMEOUT,
                check_same_thread=False,
                isolation_level=None,
            )
            (application,) = self._database.execute("PRAGMA application_id").fetchone()
            (count,) = self._database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if count and application != _APPLICATION_ID:
                raise self._unusable_error("it is a database of another program")
            # Two processes would overwrite each other's state, so the second one fails.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._database.execute(_SCHEMA)
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise FailedPreconditionError(
                    f"the state file {path} is used by another process; choose another file",
                ) from error
            raise self._unusable_error(str(error)) from error

    def load(self) -> dict[str, dict[str, Any]]:
        """Return all tables, each with its entries, oldest first."""
        tables: dict[str, dict[str, Any]] = {}
        rows = self._database.execute("SELECT name, key, value FROM entries ORDER BY number")
        for name, key, value in rows:
            tables.setdefault(name, {})[key] = json.loads(value)
        return tables

    def save(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace entries in one transaction; the value None removes an entry.

        Raises:
            FailedPreconditionError: the file cannot be written.
        """
        rows = [(name, key, value) for name, entries in changes.items() for key, value in entries.items()]
        if not rows:
            return
        kept = [(name, key, json.dumps(value)) for name, key, value in rows if value is not None]
        try:
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:
                self._database.executemany(
                    "DELETE FROM entries WHERE name = ? AND key = ?",
                    [(name, key) for name, key, _ in rows],
                )
                self._database.executemany("INSERT INTO entries (name, key, value) VALUES (?, ?, ?)", kept)
        except sqlite3.Error as error:
            raise self._unusable_error(str(error)) from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _unusable_error(self, why: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"the state file {self._path} cannot be used: {why}; choose another file or remove it",
        )
