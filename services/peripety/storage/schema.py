"""The tables of all services together, and the version that is recorded of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, insert, select

from peripety.errors import FailedPreconditionError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["METADATA", "SCHEMA_VERSION", "create_tables"]

METADATA = MetaData()
"""The one catalogue: every service declares its tables on it."""

SCHEMA_VERSION = 1
"""Version of all tables together, recorded in the database."""

_schema = Table("peripety_schema", METADATA, Column("version", Integer, primary_key=True))


def create_tables(connection: Connection) -> None:
    """Create the tables declared so far that do not exist yet, and check the recorded version.

    Raises:
        FailedPreconditionError: the database was written by a newer version of this program.
    """
    METADATA.create_all(connection)
    version = connection.scalar(select(_schema.c.version))
    if version is None:
        connection.execute(insert(_schema).values(version=SCHEMA_VERSION))
    elif version > SCHEMA_VERSION:
        raise FailedPreconditionError(
            f"The database has schema version {version} and this program knows {SCHEMA_VERSION}: run a newer"
            " program, or set PERIPETY_DATABASE_URL to another database",
            code="NEWER_SCHEMA",
        )
