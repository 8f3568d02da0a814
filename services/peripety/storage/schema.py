"""Table metadata of all services, and the schema version stored in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, insert, select, update

from peripety.errors import FailedPreconditionError
from peripety.storage import migrations

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["METADATA", "create_tables", "schema_version"]

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
    _schema.create(connection, checkfirst=True)
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
    METADATA.create_all(connection)
