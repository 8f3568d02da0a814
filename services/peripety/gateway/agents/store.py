"""Tables of agent runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, Text, select

from peripety.durable import store as durable
from peripety.durable.tables import run_tables
from peripety.durable.writing import read_error
from peripety.gateway.agents.changes import RunSummary
from peripety.gateway.agents.model import Run, RunEnded, RunEvent, RunState
from peripety.gateway.agents.writing import (
    ENDED,
    PHASE_COMPLETED,
    read_budget,
    read_event,
    read_manifest,
    read_progress,
    read_result,
    write_budget,
    write_event,
    write_manifest,
    write_progress,
    write_results,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.storage import Database

__all__ = ["RunStore"]

_tables = run_tables(
    "agent",
    Column("name", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("budget", Text),
    Column("conversation_id", Text, nullable=False),
    Column("parent_id", Text),
    Column("inherited", Text, nullable=False),  # results copied with the parent's history
    Column("phase", BigInteger, nullable=False),
    Column("total_phases", BigInteger, nullable=False),
    Column("progress", Text, nullable=False),
    Column("error", Text),
)
_runs, _events = _tables.runs, _tables.events


class RunStore(durable.RunStore[Run, RunEvent]):
    """Tables of agent runs, their events, and the requests that changed them.

    Args:
        database: the database of the process.
        now: clock, in microseconds since 1970; see the base class.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        super().__init__(database, _tables, now)

    async def newest(
        self, state: RunState | None, before: tuple[Any, ...] | None, limit: int
    ) -> list[RunSummary]:
        """Return runs, newest first.

        Args:
            state: only runs in this state; None for all.
            before: creation time and id of the last run of the previous page.
            limit: the maximum number of runs.
        """
        columns = _runs.c
        told = (columns.run_id, columns.name, columns.state, columns.phase, columns.total_phases)
        conditions = () if state is None else (columns.state == state.value,)
        rows = await self._newest((*told, columns.created, columns.updated), conditions, before, limit)
        return [
            RunSummary(
                row.run_id,
                row.name,
                RunState(row.state),
                row.phase,
                row.total_phases,
                row.created,
                row.updated,
            )
            for row in rows
        ]

    def _row(self, run: Run) -> dict[str, Any]:
        return {
            "name": run.manifest.name,
            "manifest": write_manifest(run.manifest),
            "inputs": json.dumps(run.inputs),
            "budget": write_budget(run.budget),
            "conversation_id": run.conversation_id,
            "parent_id": run.parent_id,
            "inherited": write_results(run.results),
            "phase": run.progress.phase,
            "total_phases": len(run.manifest.phases),
            "progress": write_progress(run.progress),
            "error": None,
        }

    def _written(self, event: RunEvent) -> tuple[str, str]:
        return write_event(event)

    async def _run(self, connection: AsyncConnection, row: Row[Any]) -> Run:
        completed = (_events.c.run_id == row.run_id) & (_events.c.kind == PHASE_COMPLETED)
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

    async def _event(self, connection: AsyncConnection, row: Row[Any]) -> RunEvent:
        if row.kind == ENDED:
            return RunEnded(await self._read(connection, row.run_id))
        return read_event(row.kind, row.body)
