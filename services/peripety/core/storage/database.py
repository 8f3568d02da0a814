"""Database of a process: transactions independent of the backend, tables of all services, schema version."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol, Self

from sqlalchemy import Column, Integer, MetaData, Table, insert, inspect, select, update
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable

from peripety.core.storage import migrations
from peripety.core.storage.postgresql import PostgresqlServer
from peripety.core.storage.sqlite import SqliteFile
from peripety.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy import Connection, DDLElement
    from sqlalchemy.ext.asyncio import AsyncConnection


METADATA = MetaData()
"""SQLAlchemy metadata shared by all services."""

_schema = Table("peripety_schema", METADATA, Column("version", Integer, primary_key=True))


def schema_version() -> int:
    """Return the schema version of this program, common to all tables."""
    return 1 + len(migrations.STEPS)


def create_tables(connection: Connection) -> None:
    """Migrate the existing tables, then create the declared tables that do not exist.

    Raises:
        FailedPreconditionError: the database was written by a newer version of this program.
    """
    if not inspect(connection).has_table(_schema.name):
        _schema.create(connection)
    recorded, known = connection.scalar(select(_schema.c.version)), schema_version()
    if recorded is None:
        connection.execute(insert(_schema).values(version=known))
    elif recorded > known:
        raise FailedPreconditionError(
            f"database has schema version {recorded}, newer than {known}; run a newer"
            " program, or set PERIPETY_DATABASE_URL to another database",
            code="NEWER_SCHEMA",
        )
    elif recorded < known:
        for step in migrations.STEPS[recorded - 1 :]:
            step(connection)
        connection.execute(update(_schema).values(version=known))
    # After the migrations, which expect the old tables: a new table has every column from the start.
    present = set(inspect(connection).get_table_names())
    for table in METADATA.sorted_tables:
        if table.name not in present:
            for statement in _creating_statements(table.name, connection.dialect.name):
                connection.exec_driver_sql(statement)


@cache
def _creating_statements(name: str, dialect_name: str) -> list[str]:
    """Return the statements that create a table and its indexes."""
    table, dialect = METADATA.tables[name], registry.load(dialect_name)()
    parts: list[DDLElement] = [CreateTable(table)]
    parts += [CreateIndex(index) for index in sorted(table.indexes, key=lambda index: str(index.name))]
    return [str(part.compile(dialect=dialect)) for part in parts]


class DatabaseBackend(Protocol):
    """Database backend. Every fault is raised as `UnavailableError`."""

    def read_transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a transaction that sees one snapshot and cannot write."""

    def write_transaction(self, about: str | None, /) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a write transaction; see `Database.write`."""

    async def close(self) -> None:
        """Close every connection."""


class Database:
    """The database of a process, opened once."""

    def __init__(self, backend: DatabaseBackend) -> None:
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
        async with self._backend.read_transaction() as connection:
            yield connection

    @asynccontextmanager
    async def write(self, scope: str | None = None) -> AsyncIterator[AsyncConnection]:
        """Run the block as the only writer; if it ends without an error, its effects are durable.

        A cancellation that arrives after the end of the block waits for the commit, so nothing changes later.
        Blocks that wait at the same time may be committed together (group commit). Inside a block, wait only
        for the database.

        Args:
            scope: name of everything the block reads and changes, such as `session 5`. The block then
                excludes only blocks with the same name and blocks without a name, if the backend supports
                concurrent writers.

        Raises:
            UnavailableError: the database cannot be written now, and nothing was stored. With the code
                `STORAGE_UNCERTAIN` the commit failed, and the whole block may have been stored.
        """
        async with self._backend.write_transaction(scope) as connection:
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
