"""Versioned tables: each version is identified by the hash of its content, and the last one is current."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, Float, Integer, String, Table, UniqueConstraint, func, select

from peripety.core.storage.database import METADATA
from peripety.core.validation import Page, PagePosition, decode_page_token, make_page, resolve_page_size

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection


_ID_DIGITS = 24
# SQLite autoincrements only INTEGER columns, which have 64 bits there.
AUTOINCREMENT = BigInteger().with_variant(Integer, "sqlite")


def versions_table(name: str, thing: str, content: str, *columns: Column[Any]) -> Table:
    """Declare a table of versions.

    Args:
        name: name of the table.
        thing: name of the id column.
        content: name of the content hash column.
        columns: further columns of a version.
    """
    return Table(
        name,
        METADATA,
        # Increases and is never reused: the greatest position of an id is its latest version.
        Column("position", AUTOINCREMENT, primary_key=True, autoincrement=True),
        Column(thing, String(64), nullable=False),
        Column(content, String(64), nullable=False),
        *columns,
        Column("create_time", Float, nullable=False),
        UniqueConstraint(thing, content),
        sqlite_autoincrement=True,
    )


@dataclass(frozen=True, slots=True)
class VersionedStore:
    """Queries on a table of versions.

    Attributes:
        id_column: the id column.
        hash_column: the content hash column.
    """

    table: Table
    id_column: Column[Any]
    hash_column: Column[Any]

    @classmethod
    def from_table(cls, table: Table, thing: str, content: str) -> VersionedStore:
        """Return the queries on a table made by `versions_table`."""
        return cls(table, table.c[thing], table.c[content])

    def is_version(self, thing_id: str, content_hash: str) -> tuple[ColumnElement[bool], ...]:
        """Return the conditions that select one version."""
        return (self.id_column == thing_id, self.hash_column == content_hash)

    @property
    def is_latest(self) -> ColumnElement[bool]:
        """Condition that selects the latest version of each id."""
        position = self.table.c.position
        return position.in_(select(func.max(position)).group_by(self.id_column))

    async def find(
        self,
        query: Select[Any],
        thing_id: str,
        content_hash: str | None,
        connection: AsyncConnection,
    ) -> Row[Any] | None:
        """Return a version, the latest one unless a hash is given; None if it does not exist."""
        query = query.where(self.id_column == thing_id)
        if content_hash is not None:
            query = query.where(self.hash_column == content_hash)
        newest = query.order_by(self.table.c.position.desc()).limit(1)
        row: Row[Any] | None = (await connection.execute(newest)).first()
        return row

    async def latest_hash(self, thing_id: str, connection: AsyncConnection) -> str | None:
        """Return the hash of the latest version of an id, or None if no version exists."""
        row = await self.find(select(self.hash_column), thing_id, None, connection)
        return None if row is None else str(row[0])

    async def list_page(
        self,
        query: Select[Any],
        requested_size: int,
        page_token: str,
        connection: AsyncConnection,
    ) -> Page[Row[Any]]:
        """Return a page of the versions that a query with the position selects, newest first.

        Raises:
            InvalidArgumentError: the size is negative or the token is invalid.
        """
        size, before = resolve_page_size(requested_size), decode_page_token(page_token)
        position = self.table.c.position
        if before is not None:
            query = query.where(position < before.number)
        rows = (await connection.execute(query.order_by(position.desc()).limit(size + 1))).all()
        return make_page(rows, size, lambda row: PagePosition(row.position))


def derive_id(prefix: str, content_hash: str) -> str:
    """Return an id derived from the hash of the first content."""
    return f"{prefix}_{content_hash[:_ID_DIGITS]}"


def to_datetime(timestamp: float) -> datetime:
    """Convert a stored timestamp to a datetime."""
    return datetime.fromtimestamp(timestamp, UTC)
