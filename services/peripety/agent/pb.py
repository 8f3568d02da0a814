"""Protobuf codec of agents and their runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.agent.manifest import (
    AgentRunEnded,
    AgentRunState,
    Manifest,
    Phase,
    PhaseCompleted,
    PhaseStarted,
    ToolsRequested,
)
from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.errors import field_error
from peripety.gateway.pb.requests import (
    budget_from_proto,
    budget_to_proto,
    call_to_proto,
    options_from_proto,
    options_to_proto,
    result_from_proto,
    schema_from_proto,
    schema_to_proto,
    tool_from_proto,
    tool_to_proto,
)
from peripety.gateway.pb.resources import history_from_proto
from peripety.gateway.pb.responses import answer_event_to_proto, completion_to_proto, spent_to_proto
from peripety.rpc.messages import copy_fields, members_by_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.agent.manifest import AgentRun, AgentRunEvent, PhaseResult
    from peripety.agent.store import AgentRunSummary
    from peripety.api.gateway.v1 import gateway_pb2 as gateway
    from peripety.core.runs.types import RecordedEvent
    from peripety.core.validation import Page
    from peripety.gateway.types.message import ToolResult
    from peripety.gateway.types.request import Budget, GenerationOptions


_STATES = members_by_number(pb.RunState, AgentRunState)


def manifest_from_proto(manifest: pb.Manifest) -> Manifest:
    """Convert a manifest from protobuf.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    field = ".manifest"
    return Manifest(
        name=manifest.name,
        phases=tuple(
            phase_from_proto(f"{field}.phases[{index}]", phase) for index, phase in enumerate(manifest.phases)
        ),
        system=manifest.system,
        tools=tuple(
            tool_from_proto(f"{field}.tools[{index}]", tool) for index, tool in enumerate(manifest.tools)
        ),
        options=options_from_proto(f"{field}.options", manifest.options),
        history=history_from_proto(f"{field}.history", manifest.history),
    )


def phase_from_proto(field: str, phase: pb.Phase) -> Phase:
    """Convert a phase from protobuf.

    Args:
        field: path of the phase in its request, for errors.
        phase: the phase.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    return Phase(
        phase_id=phase.phase_id,
        input_template=phase.input_template,
        system=phase.system,
        options=options_from_proto(f"{field}.options", phase.options),
        tool_names=tuple(phase.tool_names),
        schema=schema_from_proto(f"{field}.schema", phase.schema) if phase.HasField("schema") else None,
        max_tool_rounds=phase.max_tool_rounds,
    )


def run_budget_from_proto(request: pb.RunAgentRequest) -> Budget | None:
    """Return the budget of a new run.

    Raises:
        InvalidArgumentError: a cap is invalid.
    """
    return budget_from_proto(".budget", request.budget) if request.HasField("budget") else None


def results_from_proto(results: Iterable[gateway.ToolResult]) -> tuple[ToolResult, ...]:
    """Convert tool results from protobuf."""
    return tuple(map(result_from_proto, results))


def state_from_proto(state: pb.RunState.ValueType) -> AgentRunState | None:
    """Convert the state filter of a list from protobuf; None for any state.

    Raises:
        InvalidArgumentError: the state is not in the contract.
    """
    if state and state not in _STATES:
        raise field_error(".state", "must be a known state")
    return _STATES.get(state)


def event_to_proto(run_id: str, recorded: RecordedEvent[AgentRunEvent]) -> pb.RunEvent:
    """Convert an event of a run to protobuf."""
    written = pb.RunEvent(run_id=run_id, sequence=recorded.sequence)
    match recorded.event:
        case PhaseStarted() as event:
            written.phase_started.phase_id, written.phase_started.input = event.phase_id, event.input
        case PhaseCompleted() as event:
            written.phase_completed.CopyFrom(_result_to_proto(event.result))
        case ToolsRequested() as event:
            written.tools_requested.phase_id = event.phase_id
            written.tools_requested.calls.extend(map(call_to_proto, event.calls))
        case AgentRunEnded() as event if event.run.state is AgentRunState.COMPLETED:
            written.completed.CopyFrom(run_to_proto(event.run))
        case AgentRunEnded() as event:
            written.failed.CopyFrom(run_to_proto(event.run))
        case event:
            # Deltas of an answer have the same names as in other streams.
            piece = answer_event_to_proto(0, event)
            name = piece.WhichOneof("event")
            if name in {"text_delta", "reasoning_delta"}:
                setattr(written, name, getattr(piece, name))
            elif name is not None:
                getattr(written, name).CopyFrom(getattr(piece, name))
    return written


def run_to_proto(run: AgentRun) -> pb.Run:
    """Convert a run with the results of its phases to protobuf."""
    return copy_fields(
        pb.Run,
        run,
        manifest=_manifest_to_proto(run.manifest),
        phase_id=None if run.phase is None else run.phase.phase_id,
        results=map(_result_to_proto, run.results),
        pending_calls=map(call_to_proto, run.progress.pending),
        usage=spent_to_proto(run.progress.spent),
        budget=None if run.budget is None else budget_to_proto(run.budget),
        parent_run_id=run.parent_id,
        create_time=run.created,
        update_time=run.updated,
    )


def runs_to_proto(page: Page[AgentRunSummary]) -> pb.ListRunsResponse:
    """Convert a page of runs to protobuf."""
    return pb.ListRunsResponse(runs=map(_summary_to_proto, page.items), next_page_token=page.next_page_token)


def _summary_to_proto(run: AgentRunSummary) -> pb.RunSummary:
    return copy_fields(pb.RunSummary, run, create_time=run.created, update_time=run.updated)


def _result_to_proto(result: PhaseResult) -> pb.PhaseResult:
    return copy_fields(
        pb.PhaseResult,
        result,
        completion=completion_to_proto(result.completion),
        usage=spent_to_proto(result.spent),
        start_time=result.started,
        end_time=result.ended,
    )


def _manifest_to_proto(manifest: Manifest) -> pb.Manifest:
    return copy_fields(
        pb.Manifest,
        manifest,
        phases=map(_phase_to_proto, manifest.phases),
        tools=map(tool_to_proto, manifest.tools),
        options=_options_to_proto(manifest.options),
    )


def _phase_to_proto(phase: Phase) -> pb.Phase:
    return copy_fields(
        pb.Phase,
        phase,
        options=_options_to_proto(phase.options),
        schema=None if phase.schema is None else schema_to_proto(phase.schema),
    )


def _options_to_proto(options: GenerationOptions) -> gateway.GenerationOptions | None:
    return options_to_proto(options) if options.set_fields() else None
