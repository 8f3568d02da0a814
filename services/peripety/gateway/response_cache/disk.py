"""Stored answers in the database of the process: they outlive a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, Table, Text, delete, func, insert, select

from peripety.gateway.response_cache.answers import StoredAnswer
from peripety.storage import METADATA

if TYPE_CHECKING:
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
    Index("gateway_answers_oldest_first", "stored", "key", "bytes"),
)

ROW_BYTES = 384
"""What an answer takes beside its own bytes: its key, in the table and in two indexes, and its figures."""


class DiskAnswers:
    """One table of answers by key. Of what is kept in the clear there is the answer, never the prompt.

    Args:
        database: the database of the process.
        max_bytes: the most that they take together; an answer that needs more is not kept.
    """

    def __init__(self, database: Database, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes

    async def get(self, key: str) -> StoredAnswer | None:
        """Return an answer.

        Raises:
            UnavailableError: the file cannot be read now.
        """
        async with self._database.read() as connection:
            row = (
                await connection.execute(
                    select(_answers.c.answer, _answers.c.stored).where(_answers.c.key == key)
                )
            ).one_or_none()
        return None if row is None else StoredAnswer(row.answer, row.stored)

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """Keep an answer in place of the one before; the oldest make room for it.

        Args:
            key: its key.
            answer: the answer.
            expired: answers stored until this moment are deleted.

        Raises:
            UnavailableError: the file cannot be written now; nothing has changed.
        """
        needed = len(answer.data) + ROW_BYTES
        async with self._database.write() as connection:
            await connection.execute(
                delete(_answers).where((_answers.c.key == key) | (_answers.c.stored <= expired))
            )
            if needed > self._max_bytes:
                return
            if await _total(connection) + needed > self._max_bytes:
                await self._make_room(connection, needed)
            await connection.execute(
                insert(_answers).values(key=key, answer=answer.data, bytes=needed, stored=answer.stored)
            )

    async def size(self) -> int:
        """The bytes that all answers take together."""
        async with self._database.read() as connection:
            return await _total(connection)

    async def _make_room(self, connection: AsyncConnection, needed: int) -> None:
        # An eighth goes at once: adding up what to keep reads all rows, and is not to happen at every answer.
        room = min(self._max_bytes - needed, self._max_bytes * 7 // 8)
        newest_first = func.sum(_answers.c.bytes).over(order_by=(_answers.c.stored.desc(), _answers.c.key))
        ranked = select(_answers.c.key, newest_first.label("up_to_here")).subquery()
        await connection.execute(
            delete(_answers).where(_answers.c.key.in_(select(ranked.c.key).where(ranked.c.up_to_here > room)))
        )


async def _total(connection: AsyncConnection) -> int:
    return await connection.scalar(select(func.coalesce(func.sum(_answers.c.bytes), 0))) or 0
