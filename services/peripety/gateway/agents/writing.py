"""JSON codec of the columns of the run tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from peripety.gateway.agents.model import (
    Manifest,
    Phase,
    PhaseCompleted,
    PhaseResult,
    PhaseStarted,
    Progress,
    RunEnded,
    ToolsRequested,
)
from peripety.gateway.conversations.writing import read_history, read_spent, write_history, write_spent
from peripety.gateway.model import (
    Budget,
    Options,
    ReasoningDelta,
    Repairing,
    ResponseSchema,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from peripety.gateway.writing import (
    dumps,
    read_completion,
    read_findings,
    read_tool,
    write_completion,
    write_findings,
    write_tool,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.gateway.agents.model import RunEvent

__all__ = [
    "ENDED",
    "PHASE_COMPLETED",
    "read_budget",
    "read_event",
    "read_manifest",
    "read_progress",
    "read_result",
    "write_budget",
    "write_event",
    "write_manifest",
    "write_progress",
    "write_results",
]

ENDED = "ended"
"""Kind of the last event; its content is the run itself."""
PHASE_COMPLETED = "phase_completed"
"""Kind of the events that hold phase results."""

_OPTIONS = TypeAdapter(Options)


def write_manifest(manifest: Manifest) -> str:
    """Encode a manifest."""
    return dumps(
        {
            "name": manifest.name,
            "phases": [_write_phase(phase) for phase in manifest.phases],
            "system": manifest.system,
            "tools": [write_tool(tool) for tool in manifest.tools],
            "options": _OPTIONS.dump_python(manifest.options, mode="json"),
            "history": write_history(manifest.history),
        }
    )


def read_manifest(text: str) -> Manifest:
    """Decode a manifest; inverse of `write_manifest`."""
    written = json.loads(text)
    return Manifest(
        name=written["name"],
        phases=tuple(map(_read_phase, written["phases"])),
        system=written["system"],
        tools=tuple(map(read_tool, written["tools"])),
        options=_OPTIONS.validate_python(written["options"]),
        history=read_history(written["history"]),
    )


def write_budget(budget: Budget | None) -> str | None:
    """Encode a budget."""
    return None if budget is None else dumps(asdict(budget))


def read_budget(text: str | None) -> Budget | None:
    """Decode a budget; inverse of `write_budget`."""
    return None if text is None else Budget(**json.loads(text))


def write_progress(progress: Progress) -> str:
    """Encode the progress of a run."""
    return dumps({**asdict(progress), "spent": write_spent(progress.spent)})


def read_progress(text: str) -> Progress:
    """Decode the progress of a run; inverse of `write_progress`."""
    written = json.loads(text)
    return Progress(
        **{
            **written,
            "answered": tuple(
                tuple(ToolResult(**result) for result in results) for results in written["answered"]
            ),
            "pending": tuple(ToolCall(**call) for call in written["pending"]),
            "spent": read_spent(written["spent"]),
        }
    )


def write_results(results: tuple[PhaseResult, ...]) -> str:
    """Encode phase results."""
    return dumps([_write_result(result) for result in results])


def read_result(written: Mapping[str, Any]) -> PhaseResult:
    """Decode one result of `write_results`, or the body of an event of kind `PHASE_COMPLETED`."""
    completion, spent = read_completion(written["completion"]), read_spent(written["spent"])
    return PhaseResult(**{**written, "completion": completion, "spent": spent})


def write_event(event: RunEvent) -> tuple[str, str]:
    """Return the kind and the encoded body of an event."""
    match event:
        case PhaseStarted():
            kind, body = "phase_started", asdict(event)
        case TextDelta():
            kind, body = "text", asdict(event)
        case ReasoningDelta():
            kind, body = "reasoning", asdict(event)
        case ToolCallDelta():
            kind, body = "tool_call", asdict(event)
        case Repairing():
            kind, body = "repairing", {**asdict(event), "findings": write_findings(event.findings)}
        case PhaseCompleted():
            kind, body = PHASE_COMPLETED, _write_result(event.result)
        case ToolsRequested():
            kind, body = "tools_requested", asdict(event)
        case RunEnded():
            kind, body = ENDED, {}
    return kind, dumps(body)


def read_event(kind: str, text: str) -> RunEvent:
    """Decode an event; inverse of `write_event` for any kind but `ENDED`."""
    return _READERS[kind](json.loads(text))


def _repairing(written: Mapping[str, Any]) -> Repairing:
    return Repairing(read_findings(written["findings"]), Usage(**written["usage"]), written["calls"])


_READERS: dict[str, Callable[[dict[str, Any]], RunEvent]] = {
    "phase_started": lambda written: PhaseStarted(**written),
    "text": lambda written: TextDelta(**written),
    "reasoning": lambda written: ReasoningDelta(**written),
    "tool_call": lambda written: ToolCallDelta(**written),
    "repairing": _repairing,
    PHASE_COMPLETED: lambda written: PhaseCompleted(read_result(written)),
    "tools_requested": lambda written: ToolsRequested(
        written["phase_id"], tuple(ToolCall(**call) for call in written["calls"])
    ),
}


def _write_result(result: PhaseResult) -> dict[str, Any]:
    fields = {name: getattr(result, name) for name in PhaseResult.__dataclass_fields__}
    return {**fields, "completion": write_completion(result.completion), "spent": write_spent(result.spent)}


def _write_phase(phase: Phase) -> dict[str, Any]:
    schema = phase.schema
    return {
        "phase_id": phase.phase_id,
        "input_template": phase.input_template,
        "system": phase.system,
        "options": _OPTIONS.dump_python(phase.options, mode="json"),
        "tool_names": phase.tool_names,
        "schema": None if schema is None else [schema.name, schema.document],
        "max_tool_rounds": phase.max_tool_rounds,
    }


def _read_phase(written: Mapping[str, Any]) -> Phase:
    schema = written["schema"]
    return Phase(
        **{
            **written,
            "options": _OPTIONS.validate_python(written["options"]),
            "tool_names": tuple(written["tool_names"]),
            "schema": None if schema is None else ResponseSchema(*schema),
        }
    )
