"""Tables of things that are kept in versions: each version by the hash of its content, the last one first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, Float, Integer, String, Table, UniqueConstraint, func, select

from peripety.pages import Page, Position, page_of, page_size, position_in
from peripety.storage import METADATA

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

__all__ = ["Versions", "moment", "named_by", "versions_table"]

_ID_DIGITS = 24
# SQLite counts up only what it calls INTEGER, which has 64 bits there.
_COUNTING = BigInteger().with_variant(Integer, "sqlite")


def versions_table(name: str, thing: str, content: str, *columns: Column[Any]) -> Table:
    """A table of versions.

    Args:
        name: what it is called.
        thing: the column of the ids of what is kept.
        content: the column of the hashes that name its versions.
        columns: what else is kept of a version.
    """
    return Table(
        name,
        METADATA,
        # Counts up and is never used again: the greatest of a thing is its latest version.
        Column(
            "position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
        ),
        Column(thing, String(64), nullable=False),
        Column(content, String(64), nullable=False),
        *columns,
        Column("create_time", Float, nullable=False),
        UniqueConstraint(thing, content),
        sqlite_autoincrement=True,
    )


@dataclass(frozen=True, slots=True)
class Versions:
    """What is asked of a table of versions.

    Attributes:
        table: the table.
        thing: its column of ids.
        content: its column of hashes.
    """

    table: Table
    thing: Column[Any]
    content: Column[Any]

    @classmethod
    def of(cls, table: Table, thing: str, content: str) -> Versions:
        """Those of a table that `versions_table` made."""
        return cls(table, table.c[thing], table.c[content])

    def same(self, thing_id: str, content_hash: str) -> tuple[ColumnElement[bool], ...]:
        """What holds for one version."""
        return (self.thing == thing_id, self.content == content_hash)

    @property
    def latest(self) -> ColumnElement[bool]:
        """What holds for the latest version of each thing."""
        position = self.table.c.position
        return position.in_(select(func.max(position)).group_by(self.thing))

    async def find(
        self,
        query: Select[Any],
        thing_id: str,
        content_hash: str | None,
        connection: AsyncConnection,
    ) -> Row[Any] | None:
        """A version, the latest one unless another is named; None when it is not there."""
        query = query.where(self.thing == thing_id)
        if content_hash is not None:
            query = query.where(self.content == content_hash)
        newest = query.order_by(self.table.c.position.desc()).limit(1)
        row: Row[Any] | None = (await connection.execute(newest)).first()
        return row

    async def latest_hash(self, thing_id: str, connection: AsyncConnection) -> str | None:
        """The hash of the latest version of a thing; None when there is none."""
        row = await self.find(select(self.content), thing_id, None, connection)
        return None if row is None else str(row[0])

    async def page(
        self, query: Select[Any], asked_size: int, page_token: str, connection: AsyncConnection
    ) -> Page[Row[Any]]:
        """A page of the versions that a query finds, newest first; the position is among its columns.

        Raises:
            InvalidArgumentError: the size is negative, or the token is none of ours.
        """
        size, before = page_size(asked_size), position_in(page_token)
        position = self.table.c.position
        if before is not None:
            query = query.where(position < before.number)
        rows = (await connection.execute(query.order_by(position.desc()).limit(size + 1))).all()
        return page_of(rows, size, lambda row: Position(row.position))


def named_by(prefix: str, content_hash: str) -> str:
    """The id of a thing that its first content names."""
    return f"{prefix}_{content_hash[:_ID_DIGITS]}"


def moment(timestamp: float) -> datetime:
    """When a version was stored, from its column."""
    return datetime.fromtimestamp(timestamp, UTC)
