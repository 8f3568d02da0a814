"""Transactions on the database of a process, whichever it is."""

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
    """What differs between one database and another. Faults leave all of it as `UnavailableError`."""

    def reading(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction that sees one snapshot and cannot write."""

    def writing(self, about: str | None, /) -> AbstractAsyncContextManager[AsyncConnection]:
        """A block that writes as `Database.write` says."""

    async def close(self) -> None:
        """Close every connection."""


class Database:
    """The database of a process, opened once."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open what is behind a URL, with the tables declared so far.

        Args:
            url: `sqlite:///PATH`, a file that is made when it is missing, or
                `postgresql://user:password@host:port/name`, a database that exists.

        Raises:
            FailedPreconditionError: a package is missing that this database needs, or the database was
                written by a newer version of this program.
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
        """Run the block as the only writer; when it ends without an error, its effects are on the disk.

        A cancellation that arrives when the block has ended waits for the commit, so that nothing changes
        later. Blocks that wait at the same time may be committed together, so inside one wait for nothing but
        the database.

        Args:
            about: names all that the block reads and changes, such as `session 5`; it then keeps out only the
                blocks about the same and those about everything, if the database has room for more.

        Raises:
            UnavailableError: the database cannot be written now; nothing of the block was kept. With the code
                `STORAGE_UNCERTAIN` it failed during the commit, and all of the block may have been kept.
        """
        async with self._backend.writing(about) as connection:
            yield connection

    async def create_schema(self) -> None:
        """Create the tables declared so far that do not exist yet, and check the recorded version.

        Raises:
            FailedPreconditionError: the database was written by a newer version of this program.
        """
        async with self.write() as connection:
            await connection.run_sync(create_tables)

    async def close(self) -> None:
        """Close every connection."""
        await self._backend.close()
