"""What requests were answered with, so that one that is sent again is answered again without any work.

An answer is a list of opaque bytes. It is kept when the work is done; work that is broken off leaves nothing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Table,
    delete,
    insert,
    select,
)

from peripety.errors import AlreadyExistsError, ConflictError, NotFoundError
from peripety.gateway.streams import following
from peripety.storage import METADATA

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.storage import Database

__all__ = ["Pending", "RequestLog"]

_KEPT_SECONDS = 24 * 60 * 60

# Named after the service that was the first to keep answers; stored databases have them.
_requests = Table(
    "scenario_requests",
    METADATA,
    Column("request_id", String(64), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("answer_time", Float, nullable=False, index=True),
)
_responses = Table(
    "scenario_responses",
    METADATA,
    Column("request_id", ForeignKey(_requests.c.request_id, ondelete="CASCADE"), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("response", LargeBinary, nullable=False),
)

_Result = TypeVar("_Result")
_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class Pending(Generic[_Result]):
    """The end of some work, which changes the database when it is made.

    The change and the record of the request are one transaction: a request that is sent again never makes its
    change again.

    Attributes:
        make: makes the change in the transaction of a connection, and returns what is to be told of it.
    """

    make: Callable[[AsyncConnection], Awaitable[_Result]]

    def told(self, tell: Callable[[_Result], _Told]) -> Pending[_Told]:
        """The same end, with what is told of it put in another way."""

        async def make(connection: AsyncConnection) -> _Told:
            return tell(await self.make(connection))

        return Pending(make)


class RequestLog:
    """Answered requests in the database of the process, kept for a day.

    Args:
        database: has the tables.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def once(
        self,
        request_id: str,
        fingerprint: str,
        work: AsyncIterator[bytes | Pending[bytes]],
        *,
        after: int = 0,
    ) -> AsyncIterator[bytes]:
        """The responses to a request: those that are kept, or else those of `work`, which is done now.

        Whoever sends a request while the same one is under way in this process waits for its answer.

        Args:
            request_id: names the request.
            fingerprint: tells it from others that are sent with the same id.
            work: the responses as they come; the last one is pending, and made in the transaction that
                keeps the answer.
            after: leave out so many responses of a kept answer.

        Raises:
            AlreadyExistsError: the id was used for another request.
            ConflictError: another process was faster with the same request; its answer is kept.
            NotFoundError: responses are left out of an answer that is not kept.
        """
        lock = self._under_way.setdefault(request_id, asyncio.Lock())
        async with following(work), lock:
            async with self._database.read() as connection:
                kept = await _answer(connection, request_id, fingerprint)
            if kept is None and after:
                raise NotFoundError(
                    "There is no record of this work: send the request again with after_sequence 0",
                    code="WORK_NOT_FOUND",
                )
            if kept is not None:
                for answered in kept[after:]:
                    yield answered
                return
            done: list[bytes] = []
            async for response in work:
                if isinstance(response, Pending):
                    # Before it is sent: whoever has the last response does not wait for what comes after.
                    async with self._database.write() as connection:
                        if await _answer(connection, request_id, fingerprint) is not None:
                            raise ConflictError(
                                "Another process has answered this request meanwhile, in its own way: send it"
                                " again with after_sequence 0",
                                code="ANSWERED_MEANWHILE",
                            )
                        last = await response.make(connection)
                        await _keep(connection, request_id, fingerprint, [*done, last])
                    yield last
                else:
                    done.append(response)
                    yield response

    async def change_once(
        self, request_id: str, fingerprint: str, change: Callable[[AsyncConnection], Awaitable[None]]
    ) -> None:
        """Make a change and remember that its request was answered, in one transaction.

        Args:
            request_id: names the request.
            fingerprint: tells it from others that are sent with the same id.
            change: makes the change; not called when the request was answered before.

        Raises:
            AlreadyExistsError: the id was used for another request.
        """
        async with self._database.write() as connection:
            if await _answer(connection, request_id, fingerprint) is None:
                await change(connection)
                await _keep(connection, request_id, fingerprint, [b""])


async def _answer(connection: AsyncConnection, request_id: str, fingerprint: str) -> list[bytes] | None:
    """The kept responses in their order; None when the request was not answered yet."""
    known = await connection.scalar(
        select(_requests.c.fingerprint).where(_requests.c.request_id == request_id)
    )
    if known is None:
        return None
    if known != fingerprint:
        raise AlreadyExistsError(
            f"The request_id {request_id} was used for another request; make a new one",
            code="REQUEST_ID_REUSED",
        )
    rows = await connection.scalars(
        select(_responses.c.response)
        .where(_responses.c.request_id == request_id)
        .order_by(_responses.c.sequence)
    )
    return list(rows)


async def _keep(
    connection: AsyncConnection, request_id: str, fingerprint: str, responses: Sequence[bytes]
) -> None:
    """Remember the answer to a request, and forget those that are old."""
    now = time.time()
    rows = [
        {"request_id": request_id, "sequence": sequence, "response": response}
        for sequence, response in enumerate(responses, start=1)
    ]
    await connection.execute(delete(_requests).where(_requests.c.answer_time < now - _KEPT_SECONDS))
    await connection.execute(
        insert(_requests).values(request_id=request_id, fingerprint=fingerprint, answer_time=now)
    )
    await connection.execute(insert(_responses), rows)
