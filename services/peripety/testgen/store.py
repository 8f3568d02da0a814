"""Database store of runs and their event logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, Text, select, update

from peripety.durable import store as durable
from peripety.durable.tables import run_tables
from peripety.errors import NotFoundError
from peripety.tasks import aside
from peripety.testgen.events import Phase, RunEvent, StoppedBy
from peripety.testgen.stored import Run, RunSummary
from peripety.testgen.writing import (
    read_account,
    read_event,
    read_order,
    read_rerun,
    read_subject,
    write_account,
    write_event,
    write_order,
    write_rerun,
    write_subject,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.storage import Database
    from peripety.testgen.loop.ledger import Account
    from peripety.testgen.loop.state import RunState
    from peripety.testgen.stored import Rerun

__all__ = ["RunStore", "kept_of"]

_tables = run_tables(
    "testgen",
    Column("task_id", Text, nullable=False, index=True),
    Column("work_order", Text, nullable=False),
    Column("subject", Text),
    Column("account", Text, nullable=False),
    Column("phase", Text),
    Column("total_tests", BigInteger, nullable=False),
    Column("stopped_by", Text),
    Column("rerun", Text),
)
_runs, _events = _tables.runs, _tables.events


def kept_of(state: RunState, account: Account) -> dict[str, Any]:
    """Return the columns of a run that are derived from its events.

    Args:
        state: the state of the run.
        account: its budget account.
    """
    stopped_by = None if state.ended is None else state.ended.stopped_by
    return {
        "account": write_account(account),
        "phase": state.phase.value,
        "total_tests": len(state.tests),
        "stopped_by": None if stopped_by is None else stopped_by.value,
    }


class RunStore(durable.RunStore[Run, RunEvent]):
    """The tables of runs, of their events, and of the requests that changed them.

    Args:
        database: the database.
        now: as in the generic run store.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        super().__init__(database, _tables, now)

    async def newest(self, task_id: str, before: tuple[Any, ...] | None, limit: int) -> list[RunSummary]:
        """Return runs, newest first.

        Args:
            task_id: only runs of this task; empty for all.
            before: creation time and id of the last run of the previous page.
            limit: maximum number of runs.
        """
        columns = _runs.c
        told = (columns.run_id, columns.task_id, columns.phase, columns.total_tests, columns.stopped_by)
        conditions = (columns.task_id == task_id,) if task_id else ()
        rows = await self._newest((*told, columns.created, columns.updated), conditions, before, limit)
        return [
            RunSummary(
                row.run_id,
                row.task_id,
                row.phase and Phase(row.phase),
                row.total_tests,
                row.stopped_by and StoppedBy(row.stopped_by),
                row.created,
                row.updated,
            )
            for row in rows
        ]

    async def keep_rerun(self, run_id: str, rerun: Rerun, connection: AsyncConnection) -> None:
        """Store the results of a rerun with a run.

        Args:
            run_id: the run.
            rerun: the results; they replace earlier ones.
            connection: the transaction.

        Raises:
            NotFoundError: the run was deleted in the meantime.
        """
        changed = update(_runs).where(_runs.c.run_id == run_id).values(rerun=write_rerun(rerun))
        if not (await connection.execute(changed)).rowcount:
            raise NotFoundError(f".run_id: run '{run_id[:64]}' does not exist any more", code="UNKNOWN_RUN")

    def _row(self, run: Run) -> dict[str, Any]:
        return {
            "task_id": run.order.task_id,
            "work_order": write_order(run.order),
            "subject": write_subject(run.subject),
            **kept_of(run.so_far, run.account),
            "phase": None,
        }

    def _written(self, event: RunEvent) -> tuple[str, str]:
        return write_event(event)

    async def _run(self, connection: AsyncConnection, row: Row[Any]) -> Run:
        columns = _events.c
        query = select(columns.kind, columns.body).where(columns.run_id == row.run_id)
        told = (await connection.execute(query.order_by(columns.sequence))).all()
        size = sum(len(one.body) for one in told)
        return Run(
            run_id=row.run_id,
            order=read_order(row.work_order),
            subject=read_subject(row.subject),
            created=row.created,
            updated=row.updated,
            account=read_account(row.account),
            events=await aside(lambda: tuple(read_event(one.kind, one.body) for one in told), size),
            state=row.state,
            last_sequence=row.last_sequence,
            rerun=read_rerun(row.rerun),
        )

    async def _event(self, _connection: AsyncConnection, row: Row[Any]) -> RunEvent:
        return read_event(row.kind, row.body)
