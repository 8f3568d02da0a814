"""Transactions on the database of a process, independent of the backend."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, Self

from peripety.storage.postgresql import PostgresqlServer
from peripety.storage.schema import create_tables
from peripety.storage.sqlite import SqliteFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy.ext.asyncio import AsyncConnection

__all__ = ["Backend", "Database"]


class Backend(Protocol):
    """Database backend. Every fault is raised as `UnavailableError`."""

    def reading(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a transaction that sees one snapshot and cannot write."""

    def writing(self, about: str | None, /) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a write transaction; see `Database.write`."""

    async def close(self) -> None:
        """Close every connection."""


class Database:
    """The database of a process, opened once."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open the database of a URL and create the tables declared so far.

        Args:
            url: `sqlite:///PATH`, a file that is created if it is missing, or
                `postgresql://user:password@host:port/name`, a database that exists.

        Raises:
            FailedPreconditionError: a package for this database is missing, or the database was written by a
                newer version of this program.
            UnavailableError: the database cannot be opened or written.
        """
        database = cls(SqliteFile(url) if url.startswith("sqlite:") else PostgresqlServer(url))
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
            UnavailableError: the database cannot be read now.
        """
        async with self._backend.reading() as connection:
            yield connection

    @asynccontextmanager
    async def write(self, about: str | None = None) -> AsyncIterator[AsyncConnection]:
        """Run the block as the only writer; if it ends without an error, its effects are durable.

        A cancellation that arrives after the end of the block waits for the commit, so nothing changes later.
        Blocks that wait at the same time may be committed together (group commit). Inside a block, wait only
        for the database.

        Args:
            about: name of everything the block reads and changes, such as `session 5`. The block then
                excludes only blocks with the same name and blocks without a name, if the backend supports
                concurrent writers.

        Raises:
            UnavailableError: the database cannot be written now, and nothing was stored. With the code
                `STORAGE_UNCERTAIN` the commit failed, and the whole block may have been stored.
        """
        async with self._backend.writing(about) as connection:
            yield connection

    async def create_schema(self) -> None:
        """Create the declared tables that do not exist yet, and check the schema version.

        Raises:
            FailedPreconditionError: the database was written by a newer version of this program.
        """
        async with self.write() as connection:
            await connection.run_sync(create_tables)

    async def close(self) -> None:
        """Close every connection."""
        await self._backend.close()
