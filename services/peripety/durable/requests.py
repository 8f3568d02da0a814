"""Idempotency of requests that change runs: a request repeated within a day changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, Table, Text, delete, insert, select

from peripety.errors import AlreadyExistsError
from peripety.storage import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

__all__ = ["Request", "RequestLog", "request_id_reused", "request_table"]

_KEPT_MICROSECONDS = 24 * 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """Identity of a request that changes a run.

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


class RequestLog:
    """Executed requests in a table, each recorded in the transaction that executes it.

    Args:
        table: made by `request_table`.
        now: returns the time in microseconds since 1970.
    """

    def __init__(self, table: Table, now: Callable[[], int]) -> None:
        self._table = table
        self._now = now

    async def find(self, connection: AsyncConnection, request: Request) -> Row[Any] | None:
        """Return the record of a request, or None if it was not executed.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        query = select(self._table).where(self._table.c.request_id == request.request_id)
        row = (await connection.execute(query)).one_or_none()
        if row is not None and row.digest != request.digest:
            raise request_id_reused()
        return row

    async def record(self, connection: AsyncConnection, request: Request, **outcome: Any) -> None:
        """Record that a request was executed, with its outcome; delete records older than a day."""
        now = self._now()
        await connection.execute(delete(self._table).where(self._table.c.done < now - _KEPT_MICROSECONDS))
        await connection.execute(
            insert(self._table).values(
                request_id=request.request_id, digest=request.digest, done=now, **outcome
            )
        )


def request_id_reused() -> AlreadyExistsError:
    """Return the error for a request id that was used before, for another request or more than a day ago."""
    return AlreadyExistsError(
        ".request_id was used for a different request; make a new one for each request",
        code="REQUEST_ID_REUSED",
    )
