"""Cache of compile results and model output in the database, keyed by digests of their inputs."""

from __future__ import annotations

import time
from contextlib import nullcontext
from hashlib import sha256
from typing import TYPE_CHECKING

from sqlalchemy import Column, Float, LargeBinary, String, Table, delete, insert, select

from peripety.storage import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.storage import Database

__all__ = ["StoredArtifacts"]

_KEPT = 2_000

_artifacts = Table(
    "policy_artifacts",
    METADATA,
    Column("key", String(64), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("create_time", Float, nullable=False, index=True),
)
_columns = _artifacts.c


class StoredArtifacts:
    """Cache with the newest 2,000 entries, shared by all processes with the same database.

    Args:
        database: the database with the table.
        configured: the configured provider; entries of other providers are separate.
        now: returns the time in seconds since 1970.
    """

    def __init__(self, database: Database, configured: str, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._configured = configured
        self._now = now

    async def get(self, key: str) -> bytes | None:
        """Return the content of a key; None if it is missing or evicted."""
        query = select(_columns.content).where(_columns.key == self._digest(key))
        async with self._database.read() as connection:
            content: bytes | None = await connection.scalar(query)
        return content

    async def put(self, key: str, content: bytes, connection: AsyncConnection | None = None) -> None:
        """Store content under a key, and evict the oldest entries above the limit.

        Args:
            key: digest of the inputs.
            content: the content.
            connection: the transaction; a new one by default.
        """
        digest = self._digest(key)
        async with self._database.write() if connection is None else nullcontext(connection) as within:
            await within.execute(delete(_artifacts).where(_columns.key == digest))
            await within.execute(
                insert(_artifacts).values(key=digest, content=content, create_time=self._now())
            )
            times = select(_columns.create_time).order_by(_columns.create_time.desc())
            first_too_many = times.offset(_KEPT).limit(1).scalar_subquery()
            await within.execute(delete(_artifacts).where(_columns.create_time <= first_too_many))

    def _digest(self, key: str) -> str:
        return sha256(f"{self._configured}\n{key}".encode()).hexdigest()
