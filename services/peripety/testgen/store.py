"""Database store of test generation runs: order, event log, budget account, and their JSON codec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import BigInteger, Column, Text, select, update

from peripety.core.concurrency import run_in_thread_if_large
from peripety.core.mutation_testing import Coverage, Mutant, MutationScore
from peripety.core.runs.store import RunStore, run_tables
from peripety.core.runs.types import RUNNING, decode_error, encode_error
from peripety.errors import Finding, NotFoundError, PeripetyError
from peripety.gateway.codec import to_json_text
from peripety.gateway.types.response import UsageTotal
from peripety.testgen import events, subject_source, types
from peripety.testgen.events import (
    GenerationEvent,
    GenerationFailed,
    GenerationPhase,
    GenerationStats,
    GenerationStop,
)
from peripety.testgen.run.budget import BudgetAccount
from peripety.testgen.run.state import GenerationState
from peripety.testgen.run.steps import make_stats
from peripety.testgen.subject_source import CommandSpec, PolicyDocument, ResolvedSubject, ScenarioDocument
from peripety.testgen.subjects.command.python_program import ProgramChanges
from peripety.testgen.types import TestGenOrder

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.testgen.types import CaseVerdict, SuiteQuality


RUN_ENDED_STATE = "ended"
"""The state of a completed run."""


@dataclass(frozen=True, slots=True)
class RerunResult:
    """The results of rerunning the tests of a run after its end.

    Attributes:
        verdicts: by the ids of the tests.
        quality: their quality together.
    """

    verdicts: Mapping[str, CaseVerdict]
    quality: SuiteQuality


@dataclass(frozen=True)
class RunRecord:
    """A run.

    Attributes:
        run_id: its id.
        order: its input.
        subject: the subject of its tests; None for text only.
        created: time of creation, in microseconds since 1970.
        updated: time of its last event, in microseconds since 1970.
        account: its budget account: usage and reservations.
        events: its event log.
        state: `RUNNING` or `ENDED`.
        last_sequence: sequence number of its last event.
        rerun: the latest rerun; None without one.
    """

    run_id: str
    order: TestGenOrder
    subject: ResolvedSubject | None
    created: int
    updated: int
    account: BudgetAccount = BudgetAccount()  # noqa: RUF009 - frozen
    events: tuple[GenerationEvent, ...] = ()
    state: str = RUNNING
    last_sequence: int = 0
    rerun: RerunResult | None = None

    @cached_property
    def run_state(self) -> GenerationState:
        """The state of the run, folded from its events."""
        return GenerationState.fold(self.events, self.order)

    @property
    def stats(self) -> GenerationStats:
        """The final or current statistics, with the latest quality of its tests."""
        stats = self.run_state.ended or make_stats(self.run_state, self.account)
        return replace(stats, quality=self.quality)

    @property
    def verdicts(self) -> Mapping[str, CaseVerdict]:
        """The latest verdicts by test id."""
        return {**self.run_state.verdicts, **(self.rerun.verdicts if self.rerun else {})}

    @property
    def quality(self) -> SuiteQuality | None:
        """The latest measured quality; None without one."""
        return self.rerun.quality if self.rerun else self.run_state.quality

    @property
    def is_fenced(self) -> bool | None:
        """True if a fence isolates the program under test; None without one, and before the begin."""
        first = self.events[0] if self.events else None
        return first.is_fenced if isinstance(first, events.GenerationStarted) else None

    @property
    def error(self) -> PeripetyError | None:
        """The error of a failed run; None for any other."""
        last = self.events[-1] if self.events else None
        return last.error if isinstance(last, GenerationFailed) else None


@dataclass(frozen=True, slots=True)
class GenerationRunSummary:
    """A summary of a run.

    Attributes:
        run_id: its id.
        task_id: the caller's name of the task.
        phase: its phase; None before its begin.
        total_tests: the number of tests.
        stopped_by: the reason for its end; None while it is running.
        created: time of creation, in microseconds since 1970.
        updated: time of its last event, in microseconds since 1970.
    """

    run_id: str
    task_id: str
    phase: GenerationPhase | None
    total_tests: int
    stopped_by: GenerationStop | None
    created: int
    updated: int


T = TypeVar("T")

# The models import these names for type checkers only.
_TYPE_NAMESPACE = {
    **vars(events),
    **vars(types),
    **vars(subject_source),
    **{
        kind.__name__: kind
        for kind in (Mapping, ProgramChanges, Finding, Coverage, Mutant, MutationScore, UsageTotal)
    },
}


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    adapter = TypeAdapter(kind)
    adapter.rebuild(_types_namespace=_TYPE_NAMESPACE)
    return adapter


_EVENT_TYPES: dict[str, type[Any]] = {
    "started": events.GenerationStarted,
    "progressed": events.GenerationProgressed,
    "test_made": events.TestAdded,
    "duplicate_dropped": events.DuplicateDropped,
    "test_ran": events.TestRan,
    "reflected": events.ReflectionCompleted,
    "measured": events.QualityMeasured,
    "completed": events.GenerationCompleted,
}
_EVENT_ADAPTERS = {name: _adapter(kind) for name, kind in _EVENT_TYPES.items()}
_EVENT_NAMES = {kind: name for name, kind in _EVENT_TYPES.items()}
_FAILED_EVENT = "failed"
_SUBJECT_TYPES: dict[str, type[Any]] = {
    "scenario": ScenarioDocument,
    "policy": PolicyDocument,
    "command": CommandSpec,
}
_SUBJECT_ADAPTERS = {name: _adapter(kind) for name, kind in _SUBJECT_TYPES.items()}
_SUBJECT_NAMES = {kind: name for name, kind in _SUBJECT_TYPES.items()}
_ORDER_ADAPTER = _adapter(TestGenOrder)
_ACCOUNT_ADAPTER = _adapter(BudgetAccount)
_STATS_ADAPTER = _adapter(GenerationStats)
_RERUN_ADAPTER = _adapter(RerunResult)


def encode_event(event: GenerationEvent) -> tuple[str, str]:
    """Encode an event as its kind and its JSON text."""
    if isinstance(event, GenerationFailed):
        return _FAILED_EVENT, to_json_text(
            {"error": encode_error(event.error), "stats": _to_json(_STATS_ADAPTER, event.stats)},
        )
    kind = _EVENT_NAMES[type(event)]
    return kind, to_json_text(_to_json(_EVENT_ADAPTERS[kind], event))


def decode_event(kind: str, text: str) -> GenerationEvent:
    """Decode an event."""
    written = json.loads(text)
    if kind != _FAILED_EVENT:
        read: GenerationEvent = _EVENT_ADAPTERS[kind].validate_python(written)
        return read
    error = decode_error(written["error"])
    return GenerationFailed(error or PeripetyError(""), _STATS_ADAPTER.validate_python(written["stats"]))


def encode_order(order: TestGenOrder) -> str:
    """Encode an order."""
    return to_json_text(_to_json(_ORDER_ADAPTER, order))


def decode_order(text: str) -> TestGenOrder:
    """Decode an order."""
    return _ORDER_ADAPTER.validate_python(json.loads(text))


def encode_account(account: BudgetAccount) -> str:
    """Encode a budget account."""
    return to_json_text(_to_json(_ACCOUNT_ADAPTER, account))


def decode_account(text: str) -> BudgetAccount:
    """Decode a budget account."""
    return _ACCOUNT_ADAPTER.validate_python(json.loads(text))


def encode_subject(subject: ResolvedSubject | None) -> str | None:
    """Encode a subject."""
    if subject is None:
        return None
    kind = _SUBJECT_NAMES[type(subject)]
    return to_json_text([kind, _to_json(_SUBJECT_ADAPTERS[kind], subject)])


def decode_subject(text: str | None) -> ResolvedSubject | None:
    """Decode a subject."""
    if text is None:
        return None
    kind, written = json.loads(text)
    read: ResolvedSubject = _SUBJECT_ADAPTERS[kind].validate_python(written)
    return read


def encode_rerun(rerun: RerunResult) -> str:
    """Encode the results of a rerun."""
    return to_json_text(_to_json(_RERUN_ADAPTER, rerun))


def decode_rerun(text: str | None) -> RerunResult | None:
    """Decode the results of a rerun."""
    return None if text is None else _RERUN_ADAPTER.validate_python(json.loads(text))


def _to_json(adapter: TypeAdapter[Any], value: Any) -> Any:
    return adapter.dump_python(value, mode="json")


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


def derived_columns(state: GenerationState, account: BudgetAccount) -> dict[str, Any]:
    """Return the columns of a run that are derived from its events.

    Args:
        state: the state of the run.
        account: its budget account.
    """
    stopped_by = None if state.ended is None else state.ended.stopped_by
    return {
        "account": encode_account(account),
        "phase": state.phase.value,
        "total_tests": len(state.tests),
        "stopped_by": None if stopped_by is None else stopped_by.value,
    }


class GenerationRunStore(RunStore[RunRecord, GenerationEvent]):
    """The tables of runs, of their events, and of the requests that changed them.

    Args:
        database: the database.
        now: as in the generic run store.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        super().__init__(database, _tables, now)

    async def list_newest(
        self,
        task_id: str,
        before: tuple[Any, ...] | None,
        limit: int,
    ) -> list[GenerationRunSummary]:
        """Return runs, newest first.

        Args:
            task_id: only runs of this task; empty for all.
            before: creation time and id of the last run of the previous page.
            limit: maximum number of runs.
        """
        columns = _runs.c
        told = (columns.run_id, columns.task_id, columns.phase, columns.total_tests, columns.stopped_by)
        conditions = (columns.task_id == task_id,) if task_id else ()
        rows = await self._list_newest((*told, columns.created, columns.updated), conditions, before, limit)
        return [
            GenerationRunSummary(
                row.run_id,
                row.task_id,
                row.phase and GenerationPhase(row.phase),
                row.total_tests,
                row.stopped_by and GenerationStop(row.stopped_by),
                row.created,
                row.updated,
            )
            for row in rows
        ]

    async def store_rerun(self, run_id: str, rerun: RerunResult, connection: AsyncConnection) -> None:
        """Store the results of a rerun with a run.

        Args:
            run_id: the run.
            rerun: the results; they replace earlier ones.
            connection: the transaction.

        Raises:
            NotFoundError: the run was deleted in the meantime.
        """
        changed = update(_runs).where(_runs.c.run_id == run_id).values(rerun=encode_rerun(rerun))
        if not (await connection.execute(changed)).rowcount:
            raise NotFoundError(f"run_id: run '{run_id[:64]}' does not exist any more", code="UNKNOWN_RUN")

    def _run_columns(self, run: RunRecord) -> dict[str, Any]:
        return {
            "task_id": run.order.task_id,
            "work_order": encode_order(run.order),
            "subject": encode_subject(run.subject),
            **derived_columns(run.run_state, run.account),
            "phase": None,
        }

    def _encode_event(self, event: GenerationEvent) -> tuple[str, str]:
        return encode_event(event)

    async def _run_from_row(self, connection: AsyncConnection, row: Row[Any]) -> RunRecord:
        columns = _events.c
        query = select(columns.kind, columns.body).where(columns.run_id == row.run_id)
        told = (await connection.execute(query.order_by(columns.sequence))).all()
        size = sum(len(one.body) for one in told)
        return RunRecord(
            run_id=row.run_id,
            order=decode_order(row.work_order),
            subject=decode_subject(row.subject),
            created=row.created,
            updated=row.updated,
            account=decode_account(row.account),
            events=await run_in_thread_if_large(
                lambda: tuple(decode_event(one.kind, one.body) for one in told),
                size,
            ),
            state=row.state,
            last_sequence=row.last_sequence,
            rerun=decode_rerun(row.rerun),
        )

    async def _event_from_row(self, _connection: AsyncConnection, row: Row[Any]) -> GenerationEvent:
        return decode_event(row.kind, row.body)
