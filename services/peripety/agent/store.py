"""Database store of agent runs: tables, summaries, and the JSON codec of their columns."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from sqlalchemy import BigInteger, Column, Text, select

from peripety.agent.manifest import (
    AgentRun,
    AgentRunEnded,
    AgentRunEvent,
    AgentRunState,
    Manifest,
    Phase,
    PhaseCompleted,
    PhaseProgress,
    PhaseResult,
    PhaseStarted,
    ToolsRequested,
)
from peripety.core.runs.store import RunStore, run_tables
from peripety.core.runs.types import RunUpdate, decode_error, encode_error
from peripety.gateway.codec import (
    decode_completion,
    decode_findings,
    decode_tool,
    encode_completion,
    encode_findings,
    encode_tool,
    to_json_text,
)
from peripety.gateway.conversations.conversation import (
    decode_history_policy,
    decode_usage_total,
    encode_history_policy,
    encode_usage_total,
)
from peripety.gateway.types.request import Budget, GenerationOptions, ResponseSchema
from peripety.gateway.types.response import ReasoningDelta, Repairing, TextDelta, ToolCallDelta, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.errors import PeripetyError


RUN_ENDED_KIND = "ended"
"""Kind of the last event; its content is the run itself."""
PHASE_COMPLETED_KIND = "phase_completed"
"""Kind of the events that hold phase results."""

_REPAIRING_KIND = "repairing"
_KINDS: dict[type, str] = {
    PhaseStarted: "phase_started",
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    ToolCallDelta: "tool_call",
    ToolsRequested: "tools_requested",
}
"""Kinds of the events that are stored field by field."""

_EVENT_ADAPTERS: dict[str, TypeAdapter[Any]] = {kind: TypeAdapter(event) for event, kind in _KINDS.items()}
_OPTIONS_ADAPTER = TypeAdapter(GenerationOptions)
_PROGRESS_ADAPTER = TypeAdapter(PhaseProgress)


def encode_manifest(manifest: Manifest) -> str:
    """Encode a manifest."""
    return to_json_text(
        {
            "name": manifest.name,
            "phases": [_encode_phase(phase) for phase in manifest.phases],
            "system": manifest.system,
            "tools": [encode_tool(tool) for tool in manifest.tools],
            "options": _OPTIONS_ADAPTER.dump_python(manifest.options, mode="json"),
            "history": encode_history_policy(manifest.history),
        },
    )


def decode_manifest(text: str) -> Manifest:
    """Decode a manifest; inverse of `encode_manifest`."""
    written = json.loads(text)
    return Manifest(
        name=written["name"],
        phases=tuple(map(_decode_phase, written["phases"])),
        system=written["system"],
        tools=tuple(map(decode_tool, written["tools"])),
        options=_OPTIONS_ADAPTER.validate_python(written["options"]),
        history=decode_history_policy(written["history"]),
    )


def encode_budget(budget: Budget | None) -> str | None:
    """Encode a budget."""
    return None if budget is None else to_json_text(asdict(budget))


def decode_budget(text: str | None) -> Budget | None:
    """Decode a budget; inverse of `encode_budget`."""
    return None if text is None else Budget(**json.loads(text))


def encode_progress(progress: PhaseProgress) -> str:
    """Encode the progress of a run."""
    return to_json_text({**asdict(progress), "spent": encode_usage_total(progress.spent)})


def decode_progress(data: str) -> PhaseProgress:
    """Decode the progress of a run; inverse of `encode_progress`."""
    written = json.loads(data)
    return _PROGRESS_ADAPTER.validate_python({**written, "spent": json.loads(written["spent"])})


def encode_results(results: tuple[PhaseResult, ...]) -> str:
    """Encode phase results."""
    return to_json_text([_encode_result(result) for result in results])


def decode_result(document: Mapping[str, Any]) -> PhaseResult:
    """Decode one result of `encode_results`, or the body of an event of kind `PHASE_COMPLETED_KIND`."""
    completion, spent = decode_completion(document["completion"]), decode_usage_total(document["spent"])
    return PhaseResult(**{**document, "completion": completion, "spent": spent})


def encode_event(event: AgentRunEvent) -> tuple[str, str]:
    """Return the kind and the encoded body of an event."""
    match event:
        case Repairing():
            kind, body = _REPAIRING_KIND, {**asdict(event), "findings": encode_findings(event.findings)}
        case PhaseCompleted():
            kind, body = PHASE_COMPLETED_KIND, _encode_result(event.result)
        case AgentRunEnded():
            kind, body = RUN_ENDED_KIND, {}
        case _:
            kind, body = _KINDS[type(event)], asdict(event)
    return kind, to_json_text(body)


def decode_event(kind: str, text: str) -> AgentRunEvent:
    """Decode an event; inverse of `encode_event` for any kind but `ENDED`."""
    written = json.loads(text)
    if kind == PHASE_COMPLETED_KIND:
        return PhaseCompleted(decode_result(written))
    if kind == _REPAIRING_KIND:
        return Repairing(decode_findings(written["findings"]), Usage(**written["usage"]), written["calls"])
    event: AgentRunEvent = _EVENT_ADAPTERS[kind].validate_python(written)
    return event


def _encode_result(result: PhaseResult) -> dict[str, Any]:
    fields = {name: getattr(result, name) for name in PhaseResult.__dataclass_fields__}
    return {
        **fields,
        "completion": encode_completion(result.completion),
        "spent": encode_usage_total(result.spent),
    }


def _encode_phase(phase: Phase) -> dict[str, Any]:
    schema = phase.schema
    return {
        "phase_id": phase.phase_id,
        "input_template": phase.input_template,
        "system": phase.system,
        "options": _OPTIONS_ADAPTER.dump_python(phase.options, mode="json"),
        "tool_names": phase.tool_names,
        "schema": None if schema is None else [schema.name, schema.document],
        "max_tool_rounds": phase.max_tool_rounds,
    }


def _decode_phase(written: Mapping[str, Any]) -> Phase:
    schema = written["schema"]
    return Phase(
        **{
            **written,
            "options": _OPTIONS_ADAPTER.validate_python(written["options"]),
            "tool_names": tuple(written["tool_names"]),
            "schema": None if schema is None else ResponseSchema(*schema),
        },
    )


def make_run_update(
    *events: AgentRunEvent,
    state: AgentRunState | None = None,
    progress: PhaseProgress | None = None,
    error: PeripetyError | None = None,
) -> RunUpdate[AgentRunEvent]:
    """Return the change to append to a run.

    Args:
        *events: the events to record, in order.
        state: the new state; None leaves it unchanged. A run in any state but RUNNING has no lease.
        progress: the new progress; None leaves it unchanged.
        error: the error of a failed run.
    """
    values: dict[str, Any] = {}
    if progress is not None:
        values |= {"progress": encode_progress(progress), "phase": progress.phase}
    if error is not None:
        values["error"] = encode_error(error)
    return RunUpdate(events, None if state is None else state.value, values)


@dataclass(frozen=True, slots=True)
class AgentRunSummary:
    """A run without its manifest, results and history, for lists."""

    run_id: str
    name: str
    state: AgentRunState
    completed_phases: int
    total_phases: int
    created: int
    updated: int


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


class AgentRunStore(RunStore[AgentRun, AgentRunEvent]):
    """Tables of agent runs, their events, and the requests that changed them.

    Args:
        database: the database of the process.
        now: clock, in microseconds since 1970; see the base class.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        super().__init__(database, _tables, now)

    async def list_newest(
        self,
        state: AgentRunState | None,
        before: tuple[Any, ...] | None,
        limit: int,
    ) -> list[AgentRunSummary]:
        """Return runs, newest first.

        Args:
            state: only runs in this state; None for all.
            before: creation time and id of the last run of the previous page.
            limit: the maximum number of runs.
        """
        columns = _runs.c
        told = (columns.run_id, columns.name, columns.state, columns.phase, columns.total_phases)
        conditions = () if state is None else (columns.state == state.value,)
        rows = await self._list_newest((*told, columns.created, columns.updated), conditions, before, limit)
        return [
            AgentRunSummary(
                row.run_id,
                row.name,
                AgentRunState(row.state),
                row.phase,
                row.total_phases,
                row.created,
                row.updated,
            )
            for row in rows
        ]

    def _run_columns(self, run: AgentRun) -> dict[str, Any]:
        return {
            "name": run.manifest.name,
            "manifest": encode_manifest(run.manifest),
            "inputs": json.dumps(run.inputs),
            "budget": encode_budget(run.budget),
            "conversation_id": run.conversation_id,
            "parent_id": run.parent_id,
            "inherited": encode_results(run.results),
            "phase": run.progress.phase,
            "total_phases": len(run.manifest.phases),
            "progress": encode_progress(run.progress),
            "error": None,
        }

    def _encode_event(self, event: AgentRunEvent) -> tuple[str, str]:
        return encode_event(event)

    async def _run_from_row(self, connection: AsyncConnection, row: Row[Any]) -> AgentRun:
        completed = (_events.c.run_id == row.run_id) & (_events.c.kind == PHASE_COMPLETED_KIND)
        own = await connection.scalars(select(_events.c.body).where(completed).order_by(_events.c.sequence))
        results = [*json.loads(row.inherited), *map(json.loads, own)]
        return AgentRun(
            run_id=row.run_id,
            manifest=decode_manifest(row.manifest),
            inputs=json.loads(row.inputs),
            budget=decode_budget(row.budget),
            conversation_id=row.conversation_id,
            created=row.created,
            updated=row.updated,
            parent_id=row.parent_id,
            state=AgentRunState(row.state),
            progress=decode_progress(row.progress),
            results=tuple(map(decode_result, results)),
            error=decode_error(row.error),
            last_sequence=row.last_sequence,
        )

    async def _event_from_row(self, connection: AsyncConnection, row: Row[Any]) -> AgentRunEvent:
        if row.kind == RUN_ENDED_KIND:
            return AgentRunEnded(await self._read(connection, row.run_id))
        return decode_event(row.kind, row.body)
