"""Response cache tiers: memory, database and Redis; and the codec and replay of stored answers.

The memory tier is an LRU cache with a bound in bytes. The database tier survives a restart. The Redis tier
is shared by all replicas.
"""

from __future__ import annotations

import json
import logging
import struct
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

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

from peripety.core import logging_setup
from peripety.core.lru import LruCache
from peripety.core.storage.database import METADATA
from peripety.errors import UnavailableError
from peripety.gateway.codec import decode_completion, encode_completion
from peripety.gateway.types.response import Completion, StopReason, Usage, replay_completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.redis_server import RedisServer
    from peripety.core.storage.database import Database
    from peripety.gateway.types.response import GatewayEvent


class StoredAnswer(NamedTuple):
    """A stored answer.

    Attributes:
        data: the answer, encoded by `encode`.
        stored_at: time of the answer, in seconds since 1970.
    """

    data: bytes
    stored_at: float


def is_storable(completion: Completion) -> bool:
    """Return True if an answer is valid and complete (or a tool call): not truncated, not declined.

    An answer that failed, or was invalid even after its repair, never becomes a completion. An answer under
    an advisory schema does, and then has findings without having been repaired.
    """
    is_valid = completion.repaired or not completion.findings
    return is_valid and completion.stop_reason in {StopReason.END, StopReason.TOOL_USE}


def without_usage(completion: Completion) -> Completion:
    """Return the same answer with zero usage, for a caller without a model call."""
    # Its value is a copy, so that a change by one caller does not affect the others.
    return replace(
        completion,
        value=deepcopy(completion.value),
        usage=Usage(),
        cost=0,
        cache_savings=0,
        cache_plan=None,
        calls=0,
        from_response_cache=True,
    )


def encode_answer(completion: Completion) -> bytes:
    """Encode an answer, without its cost."""
    return json.dumps(encode_completion(without_usage(completion)), separators=(",", ":")).encode()


def decode_answer(data: bytes) -> Completion:
    """Decode an answer; inverse of `encode`."""
    return decode_completion(json.loads(data))


def replay_answer(answer: StoredAnswer) -> Iterator[GatewayEvent]:
    """Yield a stored answer as the stream of its original events."""
    return replay_completion(decode_answer(answer.data))


_log = logging.getLogger(__name__)


class CacheTier(Protocol):
    """A persistent tier of the response cache."""

    async def get(self, key: str) -> StoredAnswer | None:
        """Return an answer.

        Raises:
            UnavailableError: the tier cannot be read now.
        """

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """Store an answer, replacing the previous one.

        Args:
            key: its key.
            answer: the answer.
            expired: answers stored up to this time have expired and may be dropped.

        Raises:
            UnavailableError: the tier cannot be written now.
        """


class ResponseCache:
    """Response cache: a tier in memory, backed by persistent tiers.

    A failing tier only costs the saving: its errors are not propagated.

    Args:
        memory: the tier in memory.
        tiers: the persistent tiers, in lookup order.
        ttl: lifetime of answers, in seconds.
        clock: current time, in seconds since 1970.
    """

    def __init__(
        self,
        memory: MemoryTier,
        tiers: Sequence[CacheTier],
        *,
        ttl: float,
        clock: Callable[[], float],
    ) -> None:
        self._memory = memory
        self._tiers = tuple(tiers)
        self._ttl = ttl
        self._clock = clock

    def get_local(self, key: str) -> StoredAnswer | None:
        """Return an answer from memory."""
        answer = self._memory.get(key)
        if answer is None or self._is_fresh(answer):
            return answer
        self._memory.remove(key)
        return None

    async def get(self, key: str) -> StoredAnswer | None:
        """Return an answer from the first tier that has it, and store it in memory."""
        for place in self._tiers:
            try:
                answer = await place.get(key)
            except UnavailableError as error:
                _log.warning("stored answers cannot be read", extra=logging_setup.describe_error(error))
                continue
            if answer is not None and self._is_fresh(answer):
                self._memory.put(key, answer)
                return answer
        return None

    def put(self, key: str, completion: Completion) -> StoredAnswer:
        """Store an answer in memory; `write` then stores it in the other tiers."""
        answer = StoredAnswer(encode_answer(completion), self._clock())
        self._memory.put(key, answer)
        return answer

    async def persist(self, key: str, answer: StoredAnswer) -> None:
        """Store an answer in every persistent tier."""
        for place in self._tiers:
            try:
                await place.put(key, answer, expired=self._clock() - self._ttl)
            except UnavailableError as error:
                _log.warning("an answer cannot be stored", extra=logging_setup.describe_error(error))

    def _is_fresh(self, answer: StoredAnswer) -> bool:
        # If the clock is set back, answers would live too long: those from the future do not count.
        return 0 <= self._clock() - answer.stored_at < self._ttl


_answer_table = Table(
    "gateway_answers",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("answer", LargeBinary, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("stored", Float, nullable=False),
    Index("gateway_answers_oldest_first", "stored", "bytes"),
)
# Summing all rows for every answer would block other writers; one row holds the total of all processes.
_size_table = Table("gateway_answers_size", METADATA, Column("bytes", BigInteger, nullable=False))

ROW_OVERHEAD_BYTES = 256
"""Overhead per answer: its key, in the table and in an index, and its numbers."""

_EVICTION_BATCH = 64  # number of rows examined at a time when room is needed


class DatabaseTier:
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
                    select(_answer_table.c.answer, _answer_table.c.stored).where(_answer_table.c.key == key),
                )
            ).one_or_none()
        return None if row is None else StoredAnswer(row.answer, row.stored)

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """See `Place.put`. Deletes expired answers, and evicts the oldest ones to make room."""
        needed = len(answer.data) + ROW_OVERHEAD_BYTES
        async with self._database.write("stored answers") as connection:
            size = await _recorded_size(connection)
            size -= await _delete(
                connection,
                (_answer_table.c.key == key) | (_answer_table.c.stored <= expired),
            )
            if needed <= self._max_bytes:
                missing = size + needed - self._max_bytes
                freed = await _evict_oldest(connection, missing)
                # If too few rows exist, some were deleted manually and are still part of the total.
                size = needed + (size - freed if freed >= missing else 0)
                row = {"key": key, "answer": answer.data, "bytes": needed, "stored": answer.stored_at}
                await connection.execute(insert(_answer_table).values(row))
            await connection.execute(update(_size_table).values(bytes=size))

    async def size(self) -> int:
        """Return the total size of all answers, in bytes."""
        async with self._database.read() as connection:
            return await _total_bytes(connection)


async def _total_bytes(connection: AsyncConnection, *which: ColumnElement[bool]) -> int:
    return (
        await connection.scalar(select(func.coalesce(func.sum(_answer_table.c.bytes), 0)).where(*which)) or 0
    )


async def _recorded_size(connection: AsyncConnection) -> int:
    size: int | None = await connection.scalar(select(_size_table.c.bytes))
    if size is None:
        size = await _total_bytes(connection)
        await connection.execute(insert(_size_table).values(bytes=size))
    return size


async def _delete(connection: AsyncConnection, condition: ColumnElement[bool]) -> int:
    """Delete rows; return their total size."""
    freed = await _total_bytes(connection, condition)
    if freed:
        await connection.execute(delete(_answer_table).where(condition))
    return freed


async def _evict_oldest(connection: AsyncConnection, missing: int) -> int:
    """Delete the oldest rows until enough bytes are free; return the number of freed bytes."""
    freed = 0
    oldest = (
        select(_answer_table.c.key, _answer_table.c.bytes)
        .order_by(_answer_table.c.stored)
        .limit(_EVICTION_BATCH)
    )
    while freed < missing:
        keys = []
        for key, size in await connection.execute(oldest):
            if freed >= missing:
                break
            keys.append(key)
            freed += size
        if not keys:
            break
        await connection.execute(delete(_answer_table).where(_answer_table.c.key.in_(keys)))
    return freed


ENTRY_OVERHEAD_BYTES = 512
"""Overhead per answer: its key, and its slot in the table."""


class MemoryTier(LruCache[str, StoredAnswer]):
    """LRU cache of answers. The caller checks their age.

    Args:
        max_bytes: the maximum total size; a larger answer is not stored.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes, _answer_size)


def _answer_size(answer: StoredAnswer) -> int:
    return len(answer.data) + ENTRY_OVERHEAD_BYTES


_ANSWER_PREFIX = "peripety:answer:"
_TIMESTAMP = struct.Struct(">d")


class RedisTier:
    """One entry per answer. Redis deletes it when it expires, or earlier if memory is short.

    Args:
        server: the server of the process.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def get(self, key: str) -> StoredAnswer | None:
        """See `Place.get`."""
        async with self._server.use() as client:
            entry = cast("bytes | None", await client.get(_ANSWER_PREFIX + key))
        if entry is None:
            return None
        (stored,) = _TIMESTAMP.unpack_from(entry)
        return StoredAnswer(entry[_TIMESTAMP.size :], stored)

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """See `Place.put`."""
        milliseconds = int((answer.stored_at - expired) * 1000)
        if milliseconds > 0:
            async with self._server.use() as client:
                await client.set(
                    _ANSWER_PREFIX + key,
                    _TIMESTAMP.pack(answer.stored_at) + answer.data,
                    px=milliseconds,
                )
