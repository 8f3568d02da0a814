"""SQLite backend in WAL mode with `synchronous=FULL`: committed data survives a crash of the machine.

One connection writes and checkpoints; all others only read. Writers therefore queue in this process, where
they share commits (group commit), and not on the file. Old SQLite libraries have a race between two
checkpointing connections (docs/explanation/decisions/0004-storage.md); with one writer it cannot occur.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from peripety.core.storage.errors import (
    BUSY_SECONDS,
    open_transaction,
    storage_unavailable,
    translate_db_errors,
)
from peripety.core.storage.group_commit import GroupCommitter
from peripety.core.storage.sqlite_driver import BEGIN_WRITING, DriverConnection, is_busy
from peripety.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import Connection
    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


_READERS = 4
# Readers wait for a connection in this process, where work of the event loop also counts as waiting: hundreds
# of requests that arrive together take longer than another process ever holds a lock.
_READER_SECONDS = 60
_RETRY_SECONDS = 0.01
_WRITER_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    # The WAL file is truncated to this size after a checkpoint instead of staying at its maximum.
    "PRAGMA journal_size_limit=67108864",
)
_READER_PRAGMAS = ("PRAGMA query_only=ON",)

# Faults of the file system, the disk or another process, as opposed to errors in our own statements.
_READ_FAULTS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
    },
)
_WRITE_FAULTS = _READ_FAULTS | {sqlite3.SQLITE_READONLY}


class SqliteFile:
    """Backend for `sqlite:///PATH`; the file and its directory are created if they are missing.

    Raises:
        UnavailableError: the directory cannot be created.
    """

    def __init__(self, url: str) -> None:
        path = make_url(url).database or ""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnavailableError(
                f"directory {Path(path).parent} of the database cannot be created ({error.strerror});"
                " set PERIPETY_DATABASE_URL to another path",
                code="STORAGE_UNAVAILABLE",
            ) from None
        self._writer = GroupCommitter(
            _engine(path, _WRITER_PRAGMAS, _WRITE_FAULTS, begin=BEGIN_WRITING, connections=1),
        )
        self._readers = _engine(path, _READER_PRAGMAS, _READ_FAULTS, begin="BEGIN", connections=_READERS)

    @asynccontextmanager
    async def read_transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a read transaction; see the protocol."""
        async with open_transaction(self._readers) as connection:
            yield connection

    @asynccontextmanager
    async def write_transaction(self, _scope: str | None, /) -> AsyncIterator[AsyncConnection]:
        """Open a write transaction; see the protocol."""
        async with self._writer.transaction() as connection:
            yield connection

    async def close(self) -> None:
        """Close every connection; the writer is closed last and leaves no WAL file behind."""
        await self._readers.dispose()
        await self._writer.close()


def _engine(
    path: str,
    pragmas: tuple[str, ...],
    faults: frozenset[int],
    *,
    begin: str,
    connections: int,
) -> AsyncEngine:
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{path}",
        async_creator=partial(
            DriverConnection.open,
            path,
            busy_seconds=BUSY_SECONDS,
            read_only=begin != BEGIN_WRITING,
        ),
        hide_parameters=True,
        max_overflow=0,
        pool_size=connections,
        pool_timeout=_READER_SECONDS,
    )

    def prepare(connection: Any, _record: object) -> None:
        connection.run_async(partial(_configure, pragmas))

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine.sync_engine, "connect", prepare)
    event.listen(engine.sync_engine, "begin", start)
    translate_db_errors(engine, partial(_translate_error, faults))
    return engine


async def _configure(pragmas: tuple[str, ...], connection: DriverConnection) -> None:
    """Configure a new connection.

    SQLite does not wait by itself for the lock that switches a new file to WAL, and processes that start
    together compete for it, so the function retries.
    """
    now = asyncio.get_running_loop().time
    patience = now() + BUSY_SECONDS
    for pragma in pragmas:
        while True:
            try:
                await connection.execute(pragma)
                break
            except sqlite3.OperationalError as error:
                if not is_busy(error) or now() >= patience:
                    raise
            await asyncio.sleep(_RETRY_SECONDS)


def _translate_error(faults: frozenset[int], context: ExceptionContext) -> UnavailableError | None:
    error = context.original_exception
    if isinstance(error, asyncio.CancelledError):
        # A cancelled read ends in the thread of its connection, and the connection stays usable.
        context.is_disconnect = False
    if not isinstance(error, sqlite3.Error):
        return None
    if context.connection is not None and not _in_transaction(context.connection):
        # SQLite has rolled back by itself, as it does after most disk faults. Another statement would be a
        # transaction of its own.
        context.is_disconnect = True
    return (
        storage_unavailable(error.sqlite_errorname)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in faults
        else None
    )


def _in_transaction(connection: Connection) -> bool:
    return cast("DriverConnection", connection.connection.driver_connection).in_transaction
