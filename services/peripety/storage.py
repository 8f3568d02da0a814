"""The database of a process: engine, pragmas, transactions, schema.

A service declares its tables on `METADATA`, asks for the process's `Database` and works inside `read()` and
`write()`, each of which is one transaction: committed when the block ends, rolled back when it raises.
SQLite runs in WAL mode with `synchronous=FULL`: what was committed survives a crash of process and machine.

One connection writes and checkpoints, all others only read. Writers therefore queue in this process and not
on the file, and the race between two checkpointing connections that old SQLite libraries have
(docs/decisions/0004-storage.md) has no second party.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Column, Integer, MetaData, Table, event, insert, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import create_async_engine

from peripety.errors import FailedPreconditionError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

__all__ = ["METADATA", "SCHEMA_VERSION", "Database"]

METADATA = MetaData()
"""The one catalogue: every service declares its tables on it."""

SCHEMA_VERSION = 1
"""Version of all tables together, recorded in the database."""

_schema = Table("peripety_schema", METADATA, Column("version", Integer, primary_key=True))

_BUSY_SECONDS = 10
_READERS = 4
_WRITER_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    # The WAL file goes back to this size after a checkpoint instead of keeping its record height.
    "PRAGMA journal_size_limit=67108864",
)
_READER_PRAGMAS = ("PRAGMA query_only=ON",)

# What the file system, the disk or another process did, as opposed to what our own statement did.
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
    }
)
_WRITE_FAULTS = _READ_FAULTS | {sqlite3.SQLITE_READONLY}


class Database:
    """One SQLite file, opened once per process."""

    def __init__(self, writer: AsyncEngine, readers: AsyncEngine) -> None:
        self._writer = writer
        self._readers = readers
        self._turnstile = asyncio.Lock()

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open the file behind `sqlite:///PATH`, making it and its directory when they are missing.

        Raises:
            UnavailableError: the file cannot be opened or written.
        """
        path = make_url(url).database or ""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnavailableError(
                f"The directory of the database cannot be made ({error.strerror}):"
                " set PERIPETY_DATABASE_URL to another path",
                code="STORAGE_UNAVAILABLE",
            ) from None
        database = cls(
            _engine(path, _WRITER_PRAGMAS, begin="BEGIN IMMEDIATE", connections=1),
            _engine(path, _READER_PRAGMAS, begin="BEGIN", connections=_READERS),
        )
        try:
            await database.create_schema()
        except BaseException:
            await database.close()
            raise
        return database

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Run the block on one consistent snapshot; writing inside it is an error.

        Raises:
            UnavailableError: the file cannot be read now.
        """
        async with _faults(_READ_FAULTS), self._readers.begin() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """Run the block as the only writer; when it ends without an error, its effects are on the disk.

        A cancellation that arrives during the commit waits for it, so nothing changes after the block.

        Raises:
            UnavailableError: the file cannot be written now; nothing of the block was kept.
        """
        async with self._turnstile, _faults(_WRITE_FAULTS), self._writer.connect() as connection:
            await connection.begin()
            yield connection
            await _finish(connection.commit())

    async def create_schema(self) -> None:
        """Create the tables declared so far that do not exist yet, and check the recorded version.

        Raises:
            FailedPreconditionError: the file was written by a newer version of this program.
        """
        async with self.write() as connection:
            await connection.run_sync(_create_tables)

    async def close(self) -> None:
        """Close every connection; the writer goes last and leaves no WAL file behind."""
        await self._readers.dispose()
        await self._writer.dispose()


def _engine(path: str, pragmas: tuple[str, ...], *, begin: str, connections: int) -> AsyncEngine:
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{path}",
        connect_args={"timeout": _BUSY_SECONDS},
        hide_parameters=True,
        max_overflow=0,
        pool_size=connections,
        pool_timeout=_BUSY_SECONDS,
    )

    def prepare(connection: Any, _record: object) -> None:
        # The driver's own transaction control would begin too late and deferred.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine.sync_engine, "connect", prepare)
    event.listen(engine.sync_engine, "begin", start)
    return engine


def _create_tables(connection: Connection) -> None:
    METADATA.create_all(connection)
    version = connection.scalar(select(_schema.c.version))
    if version is None:
        connection.execute(insert(_schema).values(version=SCHEMA_VERSION))
    elif version > SCHEMA_VERSION:
        raise FailedPreconditionError(
            f"The database has schema version {version} and this program knows {SCHEMA_VERSION}: run a newer"
            " program, or set PERIPETY_DATABASE_URL to another file",
            code="NEWER_SCHEMA",
        )


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Let `work` end even when this task is cancelled meanwhile, then pass the cancellation on."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@asynccontextmanager
async def _faults(outside: frozenset[int]) -> AsyncIterator[None]:
    """Turn faults of the disk or the file into `UnavailableError`; a wrong statement stays what it is."""
    try:
        yield
    except PoolTimeoutError:
        raise UnavailableError(
            "Every database connection stayed busy; try again later", code="STORAGE_BUSY", retry_after=1.0
        ) from None
    except DBAPIError as error:
        fault = getattr(error.orig, "sqlite_errorcode", 0)
        if fault & 0xFF not in outside:
            raise
        name = getattr(error.orig, "sqlite_errorname", "unknown")
        raise UnavailableError(
            "The database cannot be used now; nothing was changed, try again later",
            code="STORAGE_UNAVAILABLE",
            details={"fault": name},
        ) from error
