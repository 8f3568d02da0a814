"""The tables of all services together, and the version that is recorded of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, insert, select, update

from peripety.errors import FailedPreconditionError
from peripety.storage import migrations

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["METADATA", "create_tables", "schema_version"]

METADATA = MetaData()
"""The one catalogue: every service declares its tables on it."""

_schema = Table("peripety_schema", METADATA, Column("version", Integer, primary_key=True))


def schema_version() -> int:
    """Version of all tables together, as this program knows them."""
    return 1 + len(migrations.STEPS)


def create_tables(connection: Connection) -> None:
    """Bring the tables that exist up to date, then create those declared so far that do not exist yet.

    Raises:
        FailedPreconditionError: the database was written by a newer version of this program.
    """
    _schema.create(connection, checkfirst=True)
    recorded, known = connection.scalar(select(_schema.c.version)), schema_version()
    if recorded is None:
        connection.execute(insert(_schema).values(version=known))
    elif recorded > known:
        raise FailedPreconditionError(
            f"The database has schema version {recorded} and this program knows {known}: run a newer"
            " program, or set PERIPETY_DATABASE_URL to another database",
            code="NEWER_SCHEMA",
        )
    elif recorded < known:
        for step in migrations.STEPS[recorded - 1 :]:
            step(connection)
        connection.execute(update(_schema).values(version=known))
    # After the steps, which know the tables as they were: a new one has every column from the start.
    METADATA.create_all(connection)
