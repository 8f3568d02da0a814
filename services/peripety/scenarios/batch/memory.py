"""Verdict caches: the most recent verdicts in memory, or all of them in a file."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from peripety.errors import InvalidArgumentError
from peripety.scenarios.batch.records import asked, from_record, record_of
from peripety.scenarios.model import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from peripety.scenarios.batch.model import BatchOptions, Verdict

__all__ = ["Ledger", "Memory", "Recent", "memory_for"]

_KEPT = 4_096
_MAGIC = 0x50455249  # "PERI", identifies a file of this program

_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (asked BLOB, name BLOB, record BLOB, PRIMARY KEY (asked, name))
WITHOUT ROWID
"""
_KEEP = "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)"


class Memory(Protocol):
    """Verdict cache by content hash. All methods are thread-safe."""

    def find(self, names: Sequence[bytes]) -> dict[bytes, Verdict]:
        """Return the cached verdicts, by content hash."""
        ...

    def keep(self, verdicts: Iterable[tuple[bytes, Verdict]]) -> None:
        """Store verdicts."""
        ...

    def close(self) -> None:
        """Discard temporary content."""
        ...


def memory_for(options: BatchOptions) -> Memory:
    """Return the cache of one batch; without simulation, validating again is cheaper than a file lookup."""
    return Recent() if options.level <= Level.STATIC else Ledger(options)


class Recent:
    """Cache of recent verdicts with findings; others are faster to compute than to look up."""

    def __init__(self) -> None:
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, names: Sequence[bytes]) -> dict[bytes, Verdict]:
        """Return the cached verdicts, by content hash."""
        with self._lock:
            known = {name: self._verdicts[name] for name in names if name in self._verdicts}
            for name in known:
                self._verdicts.move_to_end(name)
            return known

    def keep(self, verdicts: Iterable[tuple[bytes, Verdict]]) -> None:
        """Store verdicts that have findings."""
        with self._lock:
            self._verdicts.update((name, verdict) for name, verdict in verdicts if verdict.findings)
            while len(self._verdicts) > _KEPT:
                self._verdicts.popitem(last=False)

    def close(self) -> None:
        """Discard all verdicts."""
        self._verdicts.clear()


class Ledger:
    """Persistent cache of all verdicts in a SQLite file; committed verdicts survive a crash of the process.

    Args:
        options: validation options; verdicts of other options are ignored.
        path: the file; a temporary one by default.

    Raises:
        InvalidArgumentError: `RESUME_UNUSABLE`, the file is of another program or not writable.
    """

    def __init__(self, options: BatchOptions, path: Path | None = None) -> None:
        self._asked = bytes.fromhex(asked(options))
        self._lock = threading.Lock()
        try:
            self._database = _opened(path)
        except sqlite3.Error as error:
            raise _unusable(path, str(error)) from None

    def find(self, names: Sequence[bytes]) -> dict[bytes, Verdict]:
        """Return the cached verdicts, by content hash."""
        marks = ",".join("?" * len(names))
        with self._lock:
            rows = self._database.execute(
                f"SELECT name, record FROM verdicts WHERE asked = ? AND name IN ({marks})",  # noqa: S608 - only marks
                (self._asked, *names),
            ).fetchall()
        return {name: from_record(record) for name, record in rows}

    def keep(self, verdicts: Iterable[tuple[bytes, Verdict]]) -> None:
        """Store verdicts."""
        rows = [(self._asked, name, record_of(verdict)) for name, verdict in verdicts]
        with self._lock, self._database:
            self._database.executemany(_KEEP, rows)

    def close(self) -> None:
        """Close the file; a temporary one is removed."""
        with self._lock, suppress(sqlite3.Error):
            self._database.close()


def _opened(path: Path | None) -> sqlite3.Connection:
    # Threads share the connection under a lock. An empty name is a temporary file that SQLite removes.
    database = sqlite3.connect("" if path is None else path, check_same_thread=False)
    try:
        _require_ours(database)
        database.execute(f"PRAGMA application_id = {_MAGIC}")
        # A killed process loses no committed data; a power failure loses the last moments.
        database.execute(f"PRAGMA journal_mode = {'OFF' if path is None else 'WAL'}")
        database.execute(f"PRAGMA synchronous = {'OFF' if path is None else 'NORMAL'}")
        database.execute(_SCHEMA)
        database.commit()
    except BaseException:
        database.close()
        raise
    return database


def _require_ours(database: sqlite3.Connection) -> None:
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (magic,) = database.execute("PRAGMA application_id").fetchone()
    if tables and magic != _MAGIC:
        raise sqlite3.DatabaseError("it is the database of another program")


def _unusable(path: Path | None, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{path} cannot store verdicts: {reason}; use a new file, or one of an earlier batch",
        code="RESUME_UNUSABLE",
    )
