"""Database store of durable runs and their events.

Every change of a run is one transaction: its new state and the events that describe it are stored together
or not at all. A worker holds the lease of its run, and the store rejects writes without it. Of two
processes that believe they have the run, the database lets only one write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
    tuple_,
    update,
)

from peripety.core.idempotency.store import IdempotencyStore, request_id_reused_error, request_table
from peripety.core.runs.types import RUNNING, LostLeaseError, RecordedEvent, RunLog, StartResult, StoredRun
from peripety.core.storage.database import METADATA
from peripety.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import ColumnElement, Row, Update
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.idempotency.store import RequestKey
    from peripety.core.runs.types import Lease, RunUpdate
    from peripety.core.storage.database import Database


R = TypeVar("R", bound=StoredRun)
E = TypeVar("E")


class RunStore(ABC, Generic[R, E]):
    """Store of the runs of one kind, their events, and the requests that changed them.

    Args:
        database: the database of the process.
        tables: the tables of this kind.
        now: returns the time in microseconds since 1970; the clocks of all processes on one database must
            agree within the length of a lease.
    """

    def __init__(self, database: Database, tables: RunTables, now: Callable[[], int]) -> None:
        self._database = database
        self._runs = tables.runs
        self._events = tables.events
        self._now = now
        self._requests = IdempotencyStore(database, tables.requests, now)
        # Statements used by every write are built once: building takes as long as executing.
        columns = tables.runs.c
        self._find = select(
            columns.run_id,
            columns.state,
            columns.last_sequence,
            columns.lease,
            columns.leased_until,
        ).where(columns.run_id == bindparam("which"))
        self._insert = insert(tables.events)
        self._updates: dict[frozenset[str], Update] = {}

    @abstractmethod
    def _run_columns(self, run: R) -> dict[str, Any]:
        """Return the extra columns of a new run, by name."""

    @abstractmethod
    def _encode_event(self, event: E) -> tuple[str, str]:
        """Return the kind and the encoded body of an event."""

    @abstractmethod
    async def _run_from_row(self, connection: AsyncConnection, row: Row[Any]) -> R:
        """Return the run of a row."""

    @abstractmethod
    async def _event_from_row(self, connection: AsyncConnection, row: Row[Any]) -> E:
        """Return the event of a row."""

    async def find_by_request_id(self, request: RequestKey) -> StartResult[R] | None:
        """Return the run that a request has started or changed already, or None.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await self._find_request(connection, request)

    async def add(self, run: R, lease: Lease, request: RequestKey) -> StartResult[R]:
        """Store a new run that has work to do, unless its request was executed already.

        Raises:
            AlreadyExistsError: a run with the id exists, and the record of its request has expired.
        """
        async with self._database.write(f"request {request.request_id}") as connection:
            done = await self._find_request(connection, request)
            if done is not None:
                return done
            if (await connection.execute(self._find, {"which": run.run_id})).one_or_none() is not None:
                raise request_id_reused_error()
            await self._insert_run(connection, run, lease)
            await self._requests.record(connection, request, run_id=run.run_id, sequence=0)
        return StartResult(run.run_id, 0, run)

    async def get(self, run_id: str) -> R:
        """Return a run.

        Raises:
            NotFoundError: the run does not exist.
        """
        async with self._database.read() as connection:
            return await self._read(connection, run_id)

    async def last_sequence(self, run_id: str) -> int:
        """Return the sequence of the last event of a run; raise as `get` does."""
        async with self._database.read() as connection:
            last: int = (await self._load_row(connection, run_id)).last_sequence
        return last

    async def read_log(self, run_id: str, after: int, limit: int) -> RunLog[E]:
        """Return at most `limit` events of a run after a sequence.

        Raises:
            NotFoundError: the run does not exist.
        """
        columns = self._events.c
        query = select(self._events).where(columns.run_id == run_id, columns.sequence > after)
        async with self._database.read() as connection:
            row = await self._load_row(connection, run_id)
            found = (await connection.execute(query.order_by(columns.sequence).limit(limit))).all()
            events = [
                RecordedEvent(one.sequence, await self._event_from_row(connection, one)) for one in found
            ]
        return RunLog(events, row.state == RUNNING, self._is_abandoned(row))

    async def acquire_lease(self, run_id: str, lease: Lease) -> R | None:
        """Acquire the lease of an abandoned run; return None if the run is not abandoned.

        Raises:
            NotFoundError: the run does not exist.
        """
        async with self._database.write(f"run {run_id}") as connection:
            if not self._is_abandoned(await self._load_row(connection, run_id)):
                return None
            await self._update_columns(connection, run_id, lease=lease.name, leased_until=lease.until)
            return await self._read(connection, run_id)

    async def append_events(self, run_id: str, lease: Lease, change: RunUpdate[E]) -> list[RecordedEvent[E]]:
        """Append the events of the lease holder and renew the lease.

        Returns:
            The events with their positions in the log.

        Raises:
            LostLeaseError: the run has another holder or none.
            PeripetyError: the pending event cannot be made; nothing is stored.
        """
        # A pending event changes other tables, so its transaction excludes all others.
        scope = f"run {run_id}" if change.pending is None else None
        async with self._database.write(scope) as connection:
            row = await self._load_row(connection, run_id, missing=LostLeaseError())
            if row.lease != lease.name:
                raise LostLeaseError
            if change.pending is not None:
                change = replace(change, events=(*change.events, await change.pending.make(connection)))
            await self._apply(connection, row, change, lease)
        return [
            RecordedEvent(at, event) for at, event in enumerate(change.events, start=row.last_sequence + 1)
        ]

    async def update(
        self,
        run_id: str,
        request: RequestKey,
        decide: Callable[[R], RunUpdate[E]],
        lease: Lease | None = None,
    ) -> StartResult[R]:
        """Change a run for a request, unless the same request was executed already.

        Args:
            run_id: the run.
            request: the request.
            decide: returns the change of the run; if it raises, the run is unchanged.
            lease: the new lease of the run; None for no worker.

        Raises:
            NotFoundError: the run does not exist.
        """
        async with self._database.write(f"run {run_id}") as connection:
            done = await self._find_request(connection, request)
            if done is not None:
                return done
            before = await self._read(connection, run_id)
            await self._apply(connection, await self._load_row(connection, run_id), decide(before), lease)
            await self._requests.record(
                connection,
                request,
                run_id=run_id,
                sequence=before.last_sequence,
            )
            return StartResult(run_id, before.last_sequence, await self._read(connection, run_id))

    async def release_lease(self, run_id: str, lease: Lease) -> None:
        """Release a lease, so that another worker can claim the run at once."""
        async with self._database.write(f"run {run_id}") as connection:
            mine = (self._runs.c.run_id == run_id) & (self._runs.c.lease == lease.name)
            await connection.execute(update(self._runs).where(mine).values(lease=None, leased_until=0))

    async def delete(self, run_id: str, request: RequestKey) -> None:
        """Delete a run with its events.

        Raises:
            NotFoundError: the run does not exist.
        """
        async with self._database.write(f"run {run_id}") as connection:
            if await self._find_request(connection, request) is not None:
                return
            await self._load_row(connection, run_id)
            await connection.execute(delete(self._runs).where(self._runs.c.run_id == run_id))
            await self._requests.record(connection, request, run_id=run_id, sequence=0)

    async def _list_newest(
        self,
        selected: Iterable[ColumnElement[Any]],
        conditions: Iterable[ColumnElement[bool]],
        before: tuple[Any, ...] | None,
        limit: int,
    ) -> Sequence[Row[Any]]:
        """Return columns of runs, newest first.

        Args:
            selected: the columns to select.
            conditions: conditions on the runs.
            before: creation time and id of the last run of the previous page.
            limit: maximum number of rows.
        """
        columns = (self._runs.c.created, self._runs.c.run_id)
        query = select(*selected).where(*conditions).order_by(*(one.desc() for one in columns))
        if before is not None:
            query = query.where(tuple_(*columns) < before)
        async with self._database.read() as connection:
            return (await connection.execute(query.limit(limit))).all()

    async def _insert_run(self, connection: AsyncConnection, run: R, lease: Lease) -> None:
        row = {
            "run_id": run.run_id,
            "state": RUNNING,
            "last_sequence": 0,
            "lease": lease.name,
            "leased_until": lease.until,
            "created": run.created,
            "updated": run.updated,
        }
        await connection.execute(insert(self._runs).values(row | self._run_columns(run)))

    async def _read(self, connection: AsyncConnection, run_id: str) -> R:
        found = await connection.execute(select(self._runs).where(self._runs.c.run_id == run_id))
        return await self._run_from_row(connection, _require_row(found.one_or_none(), run_id))

    async def _find_request(self, connection: AsyncConnection, request: RequestKey) -> StartResult[R] | None:
        row = await self._requests.find(connection, request)
        return None if row is None else StartResult(row.run_id, row.sequence)

    async def _apply(
        self,
        connection: AsyncConnection,
        row: Row[Any],
        change: RunUpdate[E],
        lease: Lease | None,
    ) -> None:
        state = change.state or row.state
        holder = lease if state == RUNNING else None
        values: dict[str, Any] = {
            **change.values,
            "state": state,
            "lease": holder and holder.name,
            "leased_until": holder.until if holder else 0,
        }
        if change.events:
            rows = [
                dict(zip(("kind", "body"), self._encode_event(event), strict=True))
                | {"run_id": row.run_id, "sequence": sequence}
                for sequence, event in enumerate(change.events, start=row.last_sequence + 1)
            ]
            await connection.execute(self._insert, rows)
            values |= {"last_sequence": row.last_sequence + len(rows), "updated": self._now()}
        await self._update_columns(connection, row.run_id, **values)

    async def _load_row(
        self,
        connection: AsyncConnection,
        run_id: str,
        missing: Exception | None = None,
    ) -> Row[Any]:
        found = await connection.execute(self._find, {"which": run_id})
        row: Row[Any] = _require_row(found.one_or_none(), run_id, missing)
        return row

    async def _update_columns(self, connection: AsyncConnection, run_id: str, **values: Any) -> None:
        named = frozenset(values)
        if named not in self._updates:
            changed = update(self._runs).where(self._runs.c.run_id == bindparam("which"))
            self._updates[named] = changed.values({name: bindparam(name) for name in values})
        await connection.execute(self._updates[named], {**values, "which": run_id})

    def _is_abandoned(self, row: Row[Any]) -> bool:
        return bool(row.state == RUNNING and row.leased_until <= self._now())


def _require_row(row: Any, run_id: str, missing: Exception | None = None) -> Any:
    if row is None:
        raise missing or unknown_run_error(run_id)
    return row


def unknown_run_error(run_id: str) -> NotFoundError:
    """Return the error for the id of a run that does not exist, or that the caller cannot reach."""
    return NotFoundError(f"run_id: unknown run '{run_id[:64]}'; list the runs", code="UNKNOWN_RUN")


class RunTables(NamedTuple):
    """Tables of one kind of runs.

    Attributes:
        runs: the runs.
        events: the events of the runs.
        requests: the requests that started and changed the runs.
    """

    runs: Table
    events: Table
    requests: Table


def run_tables(kind: str, *columns: Column[Any]) -> RunTables:
    """Declare the tables of a kind of runs.

    Args:
        kind: prefix of the table names.
        columns: extra columns of a run.
    """
    runs = Table(
        f"{kind}_runs",
        METADATA,
        Column("run_id", Text, primary_key=True),
        *columns,
        Column("state", Text, nullable=False),
        Column("last_sequence", BigInteger, nullable=False),
        Column("lease", Text),
        Column("leased_until", BigInteger, nullable=False),
        Column("created", BigInteger, nullable=False),
        Column("updated", BigInteger, nullable=False),
        Index(f"{kind}_runs_newest_first", "created", "run_id"),
    )
    events = Table(
        f"{kind}_events",
        METADATA,
        Column("run_id", Text, ForeignKey(runs.c.run_id, ondelete="CASCADE"), primary_key=True),
        Column("sequence", BigInteger, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    requests = request_table(
        f"{kind}_requests",
        Column("run_id", Text, nullable=False),
        Column("sequence", BigInteger, nullable=False),
    )
    return RunTables(runs, events, requests)
