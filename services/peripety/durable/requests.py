"""Which requests were carried out: the same one again, within a day, changes nothing."""

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
    """Names a request that changes something.

    Attributes:
        request_id: the same one again changes nothing.
        digest: tells it from another request under the same id.
    """

    request_id: str
    digest: str


def request_table(name: str, *outcome: Column[Any]) -> Table:
    """Declare a table of requests.

    Args:
        name: of the table.
        outcome: what is kept of each request.
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
    """The requests in a table, each recorded in the transaction that carries it out.

    Args:
        table: made by `request_table`.
        now: the time in microseconds since 1970.
    """

    def __init__(self, table: Table, now: Callable[[], int]) -> None:
        self._table = table
        self._now = now

    async def find(self, connection: AsyncConnection, request: Request) -> Row[Any] | None:
        """What is kept of a request; None when it was not carried out.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        query = select(self._table).where(self._table.c.request_id == request.request_id)
        row = (await connection.execute(query)).one_or_none()
        if row is not None and row.digest != request.digest:
            raise request_id_reused()
        return row

    async def record(self, connection: AsyncConnection, request: Request, **outcome: Any) -> None:
        """Keep that a request was carried out, and what came of it; forget those of the day before."""
        now = self._now()
        await connection.execute(delete(self._table).where(self._table.c.done < now - _KEPT_MICROSECONDS))
        await connection.execute(
            insert(self._table).values(
                request_id=request.request_id, digest=request.digest, done=now, **outcome
            )
        )


def request_id_reused() -> AlreadyExistsError:
    """The id of a request was that of another one, or of the same one more than a day ago."""
    return AlreadyExistsError(
        ".request_id was used for a different request; make a new one for each request",
        code="REQUEST_ID_REUSED",
    )
