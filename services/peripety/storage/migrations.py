"""How a database of an older version becomes one of this version, step by step.

All steps stand here, in the order in which they were added, and name tables by what they were called then: a
process brings a database up to date whichever services it serves, so no step may need what only some import.
docs/decisions/0004-storage.md says how to add one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, MetaData, Table, inspect
from sqlalchemy.schema import CreateColumn

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

__all__ = ["STEPS", "add_column"]

STEPS: tuple[Callable[[Connection], None], ...] = ()
"""Step 0 turns version 1 into version 2. A step that was released is never changed, moved or removed."""


def add_column(connection: Connection, table: str, column: Column[Any]) -> None:
    """Add a column to a table, unless the database has no such table: it is then made with all its columns.

    Args:
        connection: in the transaction of the migration.
        table: its name.
        column: nullable, or with a `server_default`; the rows that exist, and those that an older program
            still adds meanwhile, have no other value. Constraints and indexes are not added.
    """
    if not inspect(connection).has_table(table):
        return
    name = connection.dialect.identifier_preparer.format_table(Table(table, MetaData(), column))
    specification = CreateColumn(column).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {specification}")
