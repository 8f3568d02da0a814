"""Idempotency store: executed requests by request id, replayed when they are repeated within a day.

A client that loses its connection cannot know whether its request was carried out. It sends the request again
with the same `request_id`, and the store returns the stored responses without doing the work a second time.

Design:

* A response is an opaque byte string. The store knows neither the service nor the message type, so every
  streaming service shares it. `ResponseRecorder` (the stream module) does the encoding and numbering.
* The fingerprint of the request is stored beside its id. The same id with another fingerprint is an error of
  the client (`REQUEST_ID_REUSED`): returning the stored response would silently answer a different question.
* The last response of the work is pending: a function that makes the change to the database. The change and
  the record of the responses commit in one transaction. Therefore either both exist or neither does, and no
  crash between them can make a retry repeat the change.
* The record is written before the last response is sent. A client that has the last response can rely on it.
* Work that is interrupted leaves no record, and a retry starts it from the beginning. Partial responses are
  not stored: they would need a lease and a cleanup, and work that must survive a crash is a durable run
  instead.
* Within a process, requests with the same id are single-flight: the second one waits for the first and reads
  its record. Processes do not lock each other; the second one to commit loses with `ANSWERED_MEANWHILE` and
  can fetch the record of the winner. A distributed lock would add failure modes, while the loser only wastes
  work.
* A caller that resumes a stream gives the number of responses it has (`after`). Without a record, the error
  `WORK_NOT_FOUND` makes it start over, because repeated work may produce other responses.
* Records expire after a day. Each write deletes the expired ones, so a background job is unnecessary.
* A request that changes a stored object, such as a run, has no responses to replay. Its record contains the
  outcome as columns, in a table of its own.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    TypeDecorator,
    delete,
    insert,
    select,
)

from peripety.core.concurrency import closing
from peripety.core.storage.database import METADATA
from peripety.errors import AlreadyExistsError, ConflictError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from sqlalchemy import Dialect, Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database


_RETENTION_MICROS = 24 * 3600 * 1_000_000

_Result = TypeVar("_Result")
_Converted = TypeVar("_Converted")


@dataclass(frozen=True, slots=True)
class PendingResponse(Generic[_Result]):
    """The final response of some work, together with the database change that produces it.

    The change and the record of the request are one transaction, so a request that is sent again never
    repeats its change.

    Attributes:
        make: makes the change in the transaction of the given connection and returns the result.
    """

    make: Callable[[AsyncConnection], Awaitable[_Result]]

    def map(self, convert: Callable[[_Result], _Converted]) -> PendingResponse[_Converted]:
        """Return the same pending change with its result converted by a function."""

        async def make(connection: AsyncConnection) -> _Converted:
            return convert(await self.make(connection))

        return PendingResponse(make)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Identity of a request that changes something.

    Attributes:
        request_id: idempotency key; repeating it changes nothing.
        digest: distinguishes the request from another one with the same id.
    """

    request_id: str
    digest: str


def request_table(name: str, *outcome: Column[Any]) -> Table:
    """Declare a table of executed requests.

    Args:
        name: name of the table.
        outcome: columns stored for each request.
    """
    return Table(
        name,
        METADATA,
        Column("request_id", Text, primary_key=True),
        Column("digest", Text, nullable=False),
        *outcome,
        Column("done", BigInteger, nullable=False, index=True),
    )


class _Seconds(TypeDecorator[int]):
    """A time in microseconds, stored in seconds."""

    impl = Float
    cache_ok = True

    def process_bind_param(self, value: int | None, _dialect: Dialect) -> float | None:
        return None if value is None else value / 1_000_000

    def process_result_value(self, value: float | None, _dialect: Dialect) -> int | None:
        return None if value is None else int(value * 1_000_000)


# The tables and columns have the names of the first service that used them; existing databases contain them.
_requests = Table(
    "scenario_requests",
    METADATA,
    Column("request_id", String(64), primary_key=True),
    Column("fingerprint", String(64), key="digest", nullable=False),
    Column("answer_time", _Seconds, key="done", nullable=False, index=True),
)
_responses = Table(
    "scenario_responses",
    METADATA,
    Column("request_id", ForeignKey(_requests.c.request_id, ondelete="CASCADE"), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("response", LargeBinary, nullable=False),
)


def _time_micros() -> int:
    return int(time.time() * 1_000_000)


class IdempotencyStore:
    """Executed requests in one table, each recorded in the transaction that executes it, for a day.

    The default table records the responses of streams; a table of `request_table` records an outcome.

    Args:
        database: contains the tables.
        table: contains the requests.
        now: returns the time in microseconds since 1970.
    """

    def __init__(
        self,
        database: Database,
        table: Table = _requests,
        now: Callable[[], int] = _time_micros,
    ) -> None:
        self._database = database
        self._table = table
        self._now = now
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def find(self, connection: AsyncConnection, request: RequestKey) -> Row[Any] | None:
        """Return the record of a request, or None if it was not executed.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        query = select(self._table).where(self._table.c.request_id == request.request_id)
        row = (await connection.execute(query)).one_or_none()
        if row is not None:
            check_same_request(request.digest, row.digest)
        return row

    async def record(self, connection: AsyncConnection, request: RequestKey, **outcome: Any) -> None:
        """Record that a request was executed, with its outcome; delete records older than a day."""
        now = self._now()
        columns = self._table.c
        await connection.execute(delete(self._table).where(columns.done < now - _RETENTION_MICROS))
        await connection.execute(
            insert(self._table).values(
                request_id=request.request_id,
                digest=request.digest,
                done=now,
                **outcome,
            ),
        )

    async def run_once(
        self,
        request_id: str,
        fingerprint: str,
        work: AsyncIterator[bytes | PendingResponse[bytes]],
        *,
        after: int = 0,
    ) -> AsyncIterator[bytes]:
        """Yield the responses to a request: the stored ones, or those of `work`, which is then executed now.

        A request that arrives while the same request is running in this process waits for its responses
        (single-flight).

        Args:
            request_id: identifies the request.
            fingerprint: distinguishes it from other requests with the same id.
            work: yields the responses; the last one is pending and is made in the transaction that stores the
                responses.
            after: number of stored responses to skip.

        Raises:
            AlreadyExistsError: the id was used for another request.
            ConflictError: another process completed the same request first; its responses are stored.
            NotFoundError: `after` is set, but no responses are stored.
        """
        request = RequestKey(request_id, fingerprint)
        lock = self._locks.setdefault(request_id, asyncio.Lock())
        async with closing(work), lock:
            async with self._database.read() as connection:
                kept = await self._find_responses(connection, request)
            if kept is None and after:
                raise NotFoundError(
                    "no recorded responses for this request; send it again with after_sequence 0",
                    code="WORK_NOT_FOUND",
                )
            if kept is not None:
                for answered in kept[after:]:
                    yield answered
                return
            done: list[bytes] = []
            async for response in work:
                if isinstance(response, PendingResponse):
                    # Stored before it is sent: a client that has the last response does not wait for the end
                    # of the stream.
                    async with self._database.write() as connection:
                        if await self.find(connection, request) is not None:
                            raise ConflictError(
                                "request was completed by another process meanwhile; send it"
                                " again with after_sequence 0",
                                code="ANSWERED_MEANWHILE",
                            )
                        last = await response.make(connection)
                        await _store_responses(self, connection, request, [*done, last])
                    yield last
                else:
                    done.append(response)
                    yield response

    async def execute_once(
        self,
        request_id: str,
        fingerprint: str,
        change: Callable[[AsyncConnection], Awaitable[None]],
    ) -> None:
        """Make a change and record that its request was executed, in one transaction.

        Args:
            request_id: identifies the request.
            fingerprint: distinguishes it from other requests with the same id.
            change: makes the change; not called if the request was executed before.

        Raises:
            AlreadyExistsError: the id was used for another request.
        """
        request = RequestKey(request_id, fingerprint)
        async with self._database.write() as connection:
            if await self.find(connection, request) is None:
                await change(connection)
                await _store_responses(self, connection, request, [b""])

    async def _find_responses(self, connection: AsyncConnection, request: RequestKey) -> list[bytes] | None:
        """Return the stored responses in order, or None if the request was not executed yet."""
        if await self.find(connection, request) is None:
            return None
        rows = await connection.scalars(
            select(_responses.c.response)
            .where(_responses.c.request_id == request.request_id)
            .order_by(_responses.c.sequence),
        )
        return list(rows)


async def _store_responses(
    store: IdempotencyStore,
    connection: AsyncConnection,
    request: RequestKey,
    responses: Sequence[bytes],
) -> None:
    """Record a request with its responses."""
    await store.record(connection, request)
    rows = [
        {"request_id": request.request_id, "sequence": sequence, "response": response}
        for sequence, response in enumerate(responses, start=1)
    ]
    await connection.execute(insert(_responses), rows)


def check_same_request(digest: str, recorded: str) -> None:
    """Check that a request equals the one that was recorded with its id.

    Raises:
        AlreadyExistsError: it is a different request.
    """
    if digest != recorded:
        raise request_id_reused_error()


def request_id_reused_error() -> AlreadyExistsError:
    """Return the error for a request id that was used before, for another request or more than a day ago."""
    return AlreadyExistsError(
        "request_id was used for a different request; make a new one for each request",
        code="REQUEST_ID_REUSED",
    )
