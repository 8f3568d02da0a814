"""State file: simulator state in SQLite, so that the next process continues from it."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Store"]

_APPLICATION = 0x7065_7369  # "pesi", in the file's header
_PATIENCE = 1.0  # seconds: the process that holds the file may be about to exit
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (name, key)
)
"""


class Store:
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
                path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
            )
            (application,) = self._database.execute("PRAGMA application_id").fetchone()
            (count,) = self._database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if count and application != _APPLICATION:
                raise self._unusable("it is a database of another program")
            # Two processes would overwrite each other's state, so the second one fails.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute(_SCHEMA)
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise FailedPreconditionError(
                    f"the state file {path} is used by another process; choose another file"
                ) from error
            raise self._unusable(str(error)) from error

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
                    "DELETE FROM entries WHERE name = ? AND key = ?", [(name, key) for name, key, _ in rows]
                )
                self._database.executemany("INSERT INTO entries (name, key, value) VALUES (?, ?, ?)", kept)
        except sqlite3.Error as error:
            raise self._unusable(str(error)) from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _unusable(self, why: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"the state file {self._path} cannot be used: {why}; choose another file or remove it"
        )
