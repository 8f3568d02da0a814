"""SQLite driver: statements run on the event loop unless they may block.

A statement about a few rows takes microseconds. A hop to another thread and back takes much longer on a busy
event loop, and a turn of a session would make dozens of them. Therefore only blocking operations run in a
thread: starting a write transaction, committing, closing. A read that exceeds its time limit is interrupted
and restarted there.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from peripety.core.concurrency import shield_until_done

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


T = TypeVar("T")

_INLINE_SECONDS = 0.002
_STEPS_BETWEEN_CHECKS = 2_000

BEGIN_WRITING = "BEGIN IMMEDIATE"
"""Statement that starts a write transaction; it may have to wait for another process."""


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Return True if another connection holds a lock, whatever extended error code SQLite reports."""
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


class DriverConnection:
    """Connection for SQLAlchemy's aiosqlite dialect; its user controls transactions.

    Args:
        path: the file.
        busy_seconds: seconds to wait for another process before a transaction.
        read_only: True for a read-only connection.
    """

    def __init__(self, path: str, *, busy_seconds: float, read_only: bool) -> None:
        self._thread = ThreadPoolExecutor(1, "sqlite")
        self._path = path
        self._busy_seconds = busy_seconds
        self._inline_deadline = float("inf")
        self._connection: sqlite3.Connection | None = None  # checked by the dialect
        self.is_read_only = read_only

    @classmethod
    async def open(cls, path: str, *, busy_seconds: float, read_only: bool) -> Self:
        """Open a connection; see the arguments of the class."""
        opened = cls(path, busy_seconds=busy_seconds, read_only=read_only)
        await opened.run_in_thread(opened._connect)
        return opened

    @property
    def in_transaction(self) -> bool:
        """True if a transaction is active."""
        return self._connection is not None and self._connection.in_transaction

    def cursor(self) -> _Cursor:
        """Return a new cursor."""
        return _Cursor(self, self._open_connection.cursor())

    async def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement and ignore its results."""
        await self.cursor().execute(statement, parameters)

    async def create_function(self, *arguments: Any, **named: Any) -> None:
        """Register a SQL function."""
        self._open_connection.create_function(*arguments, **named)

    async def commit(self) -> None:
        """Commit in the thread, as a commit waits for the disk."""
        await self.run_in_thread(self._open_connection.commit)

    async def rollback(self) -> None:
        """Roll back the transaction."""
        self._open_connection.rollback()

    async def close(self) -> None:
        """Close the connection in the thread, as closing the last one of a file writes."""
        if self._connection is not None:
            await self.run_in_thread(self._close)

    def stop(self) -> None:
        """Schedule the close of the connection after its current operation."""
        if self._connection is not None:
            self._thread.submit(self._close)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run a function in the thread; a cancellation waits, as the connection is in use until then."""
        return await shield_until_done(asyncio.get_running_loop().run_in_executor(self._thread, work))

    async def begin(self, statement: str) -> None:
        """Start a write transaction: at once, or in the thread if another connection is writing."""
        try:
            self._open_connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            await self.run_in_thread(
                partial(self._with_busy_timeout, partial(self._open_connection.execute, statement)),
            )

    async def run_inline(self, read: Callable[[], T]) -> T:
        """Run a read on the event loop if it is short and not blocked, else in the thread."""
        self._inline_deadline = time.perf_counter() + _INLINE_SECONDS
        try:
            return read()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT and not is_busy(error):
                raise
        finally:
            self._inline_deadline = float("inf")
        return await self.run_in_thread(partial(self._with_busy_timeout, read))

    @property
    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.ProgrammingError("the connection is closed")
        return self._connection

    def _connect(self) -> None:
        # Only the thread waits for locks, so the timeout of the connection is zero.
        self._connection = sqlite3.connect(
            self._path,
            timeout=0.0,
            isolation_level=None,
            check_same_thread=False,
        )
        if self.is_read_only:
            self._connection.set_progress_handler(self._is_overdue, _STEPS_BETWEEN_CHECKS)

    def _with_busy_timeout(self, work: Callable[[], T]) -> T:
        """Run a function while waiting for locks of other processes."""
        connection = self._open_connection
        connection.execute(f"PRAGMA busy_timeout = {self._busy_seconds * 1000:.0f}")
        try:
            return work()
        finally:
            connection.execute("PRAGMA busy_timeout = 0")

    def _close(self) -> None:
        connection, self._connection = self._open_connection, None
        connection.close()
        self._thread.shutdown(wait=False)

    def _is_overdue(self) -> bool:
        return time.perf_counter() > self._inline_deadline


class _Cursor:
    """Cursor with the interface that the dialect expects; it fetches all rows at once."""

    def __init__(self, connection: DriverConnection, cursor: sqlite3.Cursor) -> None:
        self._connection = connection
        self._cursor = cursor
        self._rows: list[Any] = []

    async def __aenter__(self) -> Self:
        return self

    @property
    def description(self) -> Any:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    async def execute(self, statement: str, parameters: Any = ()) -> None:
        read = partial(self._read, statement, parameters)
        try:
            if statement == BEGIN_WRITING:
                await self._connection.begin(statement)
            elif statement.startswith("PRAGMA"):
                self._rows = await self._connection.run_in_thread(read)
            elif self._connection.is_read_only:
                self._rows = await self._connection.run_inline(read)
            else:
                self._rows = read()
        except sqlite3.Error:
            # An error refers to its cursor, often in a reference cycle. If the garbage collector freed an
            # open cursor while the thread waits for a lock, it would block the event loop as long.
            self._cursor.close()
            raise

    async def executemany(self, statement: str, parameters: Any) -> None:
        self._cursor.executemany(statement, parameters)

    async def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        self._cursor.close()

    def _read(self, statement: str, parameters: Any) -> list[Any]:
        return self._cursor.execute(statement, parameters).fetchall()
