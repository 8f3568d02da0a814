"""Database tier of the response cache: stored answers survive a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)

from peripety.gateway.response_cache.answers import StoredAnswer
from peripety.storage import METADATA

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.storage import Database

__all__ = ["ROW_BYTES", "DiskAnswers"]

_answers = Table(
    "gateway_answers",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("answer", LargeBinary, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("stored", Float, nullable=False),
    Index("gateway_answers_oldest_first", "stored", "bytes"),
)
# Summing all rows for every answer would block other writers; one row holds the total of all processes.
_size = Table("gateway_answers_size", METADATA, Column("bytes", BigInteger, nullable=False))

ROW_BYTES = 256
"""Overhead per answer: its key, in the table and in an index, and its numbers."""

_OLDEST = 64  # number of rows examined at a time when room is needed


class DiskAnswers:
    """Table of answers by key. It stores answers in the clear, but never prompts.

    Args:
        database: the database of the process.
        max_bytes: the maximum total size; a larger answer is not stored.
    """

    def __init__(self, database: Database, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes

    async def get(self, key: str) -> StoredAnswer | None:
        """See `Place.get`."""
        async with self._database.read() as connection:
            row = (
                await connection.execute(
                    select(_answers.c.answer, _answers.c.stored).where(_answers.c.key == key)
                )
            ).one_or_none()
        return None if row is None else StoredAnswer(row.answer, row.stored)

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """See `Place.put`. Deletes expired answers, and evicts the oldest ones to make room."""
        needed = len(answer.data) + ROW_BYTES
        async with self._database.write("stored answers") as connection:
            size = await _recorded_size(connection)
            size -= await _delete(connection, (_answers.c.key == key) | (_answers.c.stored <= expired))
            if needed <= self._max_bytes:
                missing = size + needed - self._max_bytes
                freed = await _make_room(connection, missing)
                # If too few rows exist, some were deleted manually and are still part of the total.
                size = needed + (size - freed if freed >= missing else 0)
                row = {"key": key, "answer": answer.data, "bytes": needed, "stored": answer.stored}
                await connection.execute(insert(_answers).values(row))
            await connection.execute(update(_size).values(bytes=size))

    async def size(self) -> int:
        """Return the total size of all answers, in bytes."""
        async with self._database.read() as connection:
            return await _total(connection)


async def _total(connection: AsyncConnection, *which: ColumnElement[bool]) -> int:
    return await connection.scalar(select(func.coalesce(func.sum(_answers.c.bytes), 0)).where(*which)) or 0


async def _recorded_size(connection: AsyncConnection) -> int:
    size: int | None = await connection.scalar(select(_size.c.bytes))
    if size is None:
        size = await _total(connection)
        await connection.execute(insert(_size).values(bytes=size))
    return size


async def _delete(connection: AsyncConnection, which: ColumnElement[bool]) -> int:
    """Delete rows; return their total size."""
    freed = await _total(connection, which)
    if freed:
        await connection.execute(delete(_answers).where(which))
    return freed


async def _make_room(connection: AsyncConnection, missing: int) -> int:
    """Delete the oldest rows until enough bytes are free; return the number of freed bytes."""
    freed = 0
    oldest = select(_answers.c.key, _answers.c.bytes).order_by(_answers.c.stored).limit(_OLDEST)
    while freed < missing:
        keys = []
        for key, size in await connection.execute(oldest):
            if freed >= missing:
                break
            keys.append(key)
            freed += size
        if not keys:
            break
        await connection.execute(delete(_answers).where(_answers.c.key.in_(keys)))
    return freed
