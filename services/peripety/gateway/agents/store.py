"""Where runs and their events are kept.

Every change of a run is one transaction: its new state and the events that tell of it are there together or
not at all. Whoever works on a run holds its lease, and no record is taken from anybody else, so of two
processes that believe to work on a run the database lets one through.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    delete,
    insert,
    select,
    tuple_,
    update,
)

from peripety.errors import NotFoundError
from peripety.gateway.agents.changes import Log, LostLeaseError, RunSummary, Started
from peripety.gateway.agents.model import Recorded, Run, RunEnded, RunState
from peripety.gateway.agents.writing import (
    ENDED,
    PHASE_COMPLETED,
    read_budget,
    read_error,
    read_event,
    read_manifest,
    read_progress,
    read_result,
    write_budget,
    write_error,
    write_event,
    write_manifest,
    write_progress,
    write_results,
)
from peripety.gateway.request_log import RequestLog, request_table
from peripety.storage import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.gateway.agents.changes import Change, Lease
    from peripety.gateway.agents.model import RunEvent
    from peripety.gateway.request_log import Request
    from peripety.storage import Database

__all__ = ["RunStore"]

_runs = Table(
    "agent_runs",
    METADATA,
    Column("run_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("budget", Text),
    Column("conversation_id", Text, nullable=False),
    Column("parent_id", Text),
    Column("inherited", Text, nullable=False),  # results that came with the parent's history
    Column("state", Text, nullable=False),
    Column("phase", BigInteger, nullable=False),
    Column("total_phases", BigInteger, nullable=False),
    Column("progress", Text, nullable=False),
    Column("error", Text),
    Column("last_sequence", BigInteger, nullable=False),
    Column("lease", Text),
    Column("leased_until", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Index("agent_runs_newest_first", "created", "run_id"),
)

_events = Table(
    "agent_events",
    METADATA,
    Column("run_id", Text, ForeignKey(_runs.c.run_id, ondelete="CASCADE"), primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
)

_requests = request_table(
    "agent_requests", Column("run_id", Text, nullable=False), Column("sequence", BigInteger, nullable=False)
)


class RunStore:
    """The tables of runs, of their events, and of the requests that changed them.

    Args:
        database: the database of the process.
        now: the time in microseconds since 1970; the clocks of all processes on one database agree to less
            than the length of a lease.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now
        self._log = RequestLog(_requests, now)

    async def started_by(self, request: Request) -> Started | None:
        """The run that a request has started or changed already, if it has.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await self._done_by(connection, request)

    async def add(self, run: Run, lease: Lease, request: Request) -> Started:
        """Store a new run, unless its request has made one already."""
        async with self._database.write(f"request {request.request_id}") as connection:
            done = await self._done_by(connection, request)
            if done is not None:
                return done
            await connection.execute(insert(_runs).values(_row(run, lease)))
            await self._log.record(connection, request, run_id=run.run_id, sequence=0)
        return Started(run.run_id, 0, run)

    async def get(self, run_id: str) -> Run:
        """A run.

        Raises:
            NotFoundError: there is none of that id.
        """
        async with self._database.read() as connection:
            return await _read(connection, run_id)

    async def newest(
        self, state: RunState | None, before: tuple[Any, ...] | None, limit: int
    ) -> list[RunSummary]:
        """Runs, newest first.

        Args:
            state: only those in this state; None for all.
            before: when the last one of the page before was created, and its id.
            limit: the most to return.
        """
        columns = (_runs.c.created, _runs.c.run_id)
        told = (_runs.c.run_id, _runs.c.name, _runs.c.state, _runs.c.phase, _runs.c.total_phases)
        query = select(*told, _runs.c.created, _runs.c.updated).order_by(*(one.desc() for one in columns))
        if state is not None:
            query = query.where(_runs.c.state == state.value)
        if before is not None:
            query = query.where(tuple_(*columns) < before)
        async with self._database.read() as connection:
            rows = await connection.execute(query.limit(limit))
            return [
                RunSummary(row.run_id, row.name, RunState(row.state), row.phase, row.total_phases, *row[5:])
                for row in rows
            ]

    async def log(self, run_id: str, after: int, limit: int) -> Log:
        """The events of a run after a sequence, at most so many.

        Raises:
            NotFoundError: there is no such run.
        """
        query = select(_events).where(_events.c.run_id == run_id, _events.c.sequence > after)
        async with self._database.read() as connection:
            row = await _row_of(connection, run_id)
            found = (await connection.execute(query.order_by(_events.c.sequence).limit(limit))).all()
            events = [Recorded(one.sequence, await _event(connection, one)) for one in found]
        return Log(events, RunState(row.state), _is_abandoned(row, self._now()))

    async def take(self, run_id: str, lease: Lease) -> Run | None:
        """Take a run up that nobody works on; None when there is nothing to take up."""
        async with self._database.write(f"run {run_id}") as connection:
            if not _is_abandoned(await _row_of(connection, run_id), self._now()):
                return None
            await _update(connection, run_id, lease=lease.name, leased_until=lease.until)
            return await _read(connection, run_id)

    async def record(self, run_id: str, lease: Lease, change: Change) -> None:
        """Record what the holder of a lease has done, and renew the lease.

        Raises:
            LostLeaseError: the run has another holder, or none.
        """
        async with self._database.write(f"run {run_id}") as connection:
            row = await _row_of(connection, run_id, missing=LostLeaseError())
            if row.lease != lease.name:
                raise LostLeaseError
            await self._apply(connection, row, change, lease)

    async def change(
        self, run_id: str, request: Request, decide: Callable[[Run], Change], lease: Lease | None = None
    ) -> Started:
        """Change a run as a request wants it, unless the same request has done so already.

        Args:
            run_id: the run.
            request: the request.
            decide: what becomes of the run; what it raises leaves the run as it is.
            lease: who works on the run from now on; None for nobody.

        Raises:
            NotFoundError: there is no such run.
        """
        async with self._database.write(f"run {run_id}") as connection:
            done = await self._done_by(connection, request)
            if done is not None:
                return done
            before = await _read(connection, run_id)
            await self._apply(connection, await _row_of(connection, run_id), decide(before), lease)
            await self._log.record(connection, request, run_id=run_id, sequence=before.last_sequence)
            return Started(run_id, before.last_sequence, await _read(connection, run_id))

    async def release(self, run_id: str, lease: Lease) -> None:
        """Give a lease up: whoever wants to may take the run up at once."""
        async with self._database.write(f"run {run_id}") as connection:
            mine = (_runs.c.run_id == run_id) & (_runs.c.lease == lease.name)
            await connection.execute(update(_runs).where(mine).values(lease=None, leased_until=0))

    async def delete(self, run_id: str, request: Request) -> None:
        """Delete a run with its events.

        Raises:
            NotFoundError: there is no such run.
        """
        async with self._database.write(f"run {run_id}") as connection:
            if await self._done_by(connection, request) is not None:
                return
            await _row_of(connection, run_id)
            await connection.execute(delete(_runs).where(_runs.c.run_id == run_id))
            await self._log.record(connection, request, run_id=run_id, sequence=0)

    async def _done_by(self, connection: AsyncConnection, request: Request) -> Started | None:
        row = await self._log.find(connection, request)
        return None if row is None else Started(row.run_id, row.sequence)

    async def _apply(
        self, connection: AsyncConnection, row: Row[Any], change: Change, lease: Lease | None
    ) -> None:
        state = change.state or RunState(row.state)
        goes_on = state is RunState.RUNNING and lease is not None
        values: dict[str, Any] = {
            "state": state.value,
            "lease": lease.name if goes_on and lease else None,
            "leased_until": lease.until if goes_on and lease else 0,
        }
        if change.progress is not None:
            values |= {"progress": write_progress(change.progress), "phase": change.progress.phase}
        if change.error is not None:
            values["error"] = write_error(change.error)
        if change.events:
            rows = [
                dict(zip(("kind", "body"), write_event(event), strict=True))
                | {"run_id": row.run_id, "sequence": sequence}
                for sequence, event in enumerate(change.events, start=row.last_sequence + 1)
            ]
            await connection.execute(insert(_events), rows)
            values |= {"last_sequence": row.last_sequence + len(rows), "updated": self._now()}
        await _update(connection, row.run_id, **values)


async def _row_of(connection: AsyncConnection, run_id: str, missing: Exception | None = None) -> Row[Any]:
    query = select(_runs.c.run_id, _runs.c.state, _runs.c.last_sequence, _runs.c.lease, _runs.c.leased_until)
    return await _one(connection, query, run_id, missing)


async def _read(connection: AsyncConnection, run_id: str) -> Run:
    row = await _one(connection, select(_runs), run_id)
    completed = (_events.c.run_id == run_id) & (_events.c.kind == PHASE_COMPLETED)
    own = await connection.scalars(select(_events.c.body).where(completed).order_by(_events.c.sequence))
    results = [*json.loads(row.inherited), *map(json.loads, own)]
    return Run(
        run_id=row.run_id,
        manifest=read_manifest(row.manifest),
        inputs=json.loads(row.inputs),
        budget=read_budget(row.budget),
        conversation_id=row.conversation_id,
        created=row.created,
        updated=row.updated,
        parent_id=row.parent_id,
        state=RunState(row.state),
        progress=read_progress(row.progress),
        results=tuple(map(read_result, results)),
        error=read_error(row.error),
        last_sequence=row.last_sequence,
    )


async def _event(connection: AsyncConnection, row: Row[Any]) -> RunEvent:
    if row.kind == ENDED:
        return RunEnded(await _read(connection, row.run_id))
    return read_event(row.kind, row.body)


async def _one(
    connection: AsyncConnection, query: Select[Any], run_id: str, missing: Exception | None = None
) -> Row[Any]:
    row: Row[Any] | None = (await connection.execute(query.where(_runs.c.run_id == run_id))).one_or_none()
    if row is None:
        raise missing or _unknown(run_id)
    return row


async def _update(connection: AsyncConnection, run_id: str, **values: Any) -> None:
    await connection.execute(update(_runs).where(_runs.c.run_id == run_id).values(**values))


def _row(run: Run, lease: Lease) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "name": run.manifest.name,
        "manifest": write_manifest(run.manifest),
        "inputs": json.dumps(run.inputs),
        "budget": write_budget(run.budget),
        "conversation_id": run.conversation_id,
        "parent_id": run.parent_id,
        "inherited": write_results(run.results),
        "state": run.state.value,
        "phase": run.progress.phase,
        "total_phases": len(run.manifest.phases),
        "progress": write_progress(run.progress),
        "error": None,
        "last_sequence": 0,
        "lease": lease.name,
        "leased_until": lease.until,
        "created": run.created,
        "updated": run.updated,
    }


def _is_abandoned(row: Row[Any], now: int) -> bool:
    return RunState(row.state) is RunState.RUNNING and row.leased_until <= now


def _unknown(run_id: str) -> NotFoundError:
    return NotFoundError(f".run_id: there is no run '{run_id[:64]}'", code="UNKNOWN_RUN")
