"""Data types of agents and of their runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.conversations.window import HistoryPolicy
from peripety.gateway.model import (
    Budget,
    Completion,
    Options,
    ReasoningDelta,
    Repairing,
    ResponseSchema,
    Spent,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolResult,
)

if TYPE_CHECKING:
    from peripety.errors import PeripetyError

__all__ = [
    "Manifest",
    "Phase",
    "PhaseCompleted",
    "PhaseResult",
    "PhaseStarted",
    "Progress",
    "Run",
    "RunEnded",
    "RunEvent",
    "RunState",
    "ToolsRequested",
]

_DEFAULT_TOOL_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Phase:
    """One model request of an agent, with its own instructions.

    Attributes:
        phase_id: unique in its manifest.
        input_template: the user message, with placeholders; see `templates`.
        system: instructions of this phase; empty for none.
        options: generation options; unset fields fall back to the manifest's.
        tool_names: the tools that the phase may call.
        schema: JSON Schema of the answer; None for free text.
        max_tool_rounds: the maximum number of tool-call rounds; 0 uses the engine's default.
    """

    phase_id: str
    input_template: str
    system: str = ""
    options: Options = field(default_factory=Options)
    tool_names: tuple[str, ...] = ()
    schema: ResponseSchema | None = None
    max_tool_rounds: int = 0

    @property
    def tool_rounds(self) -> int:
        """Return the effective maximum number of tool-call rounds."""
        return self.max_tool_rounds or _DEFAULT_TOOL_ROUNDS


@dataclass(frozen=True, slots=True)
class Manifest:
    """Definition of an agent.

    Attributes:
        name: display name.
        phases: the phases in order, at least one.
        system: instructions of every phase.
        tools: the tools that phases can reference by name.
        options: generation options that a phase can override.
        history: the part of the history that is sent.
    """

    name: str
    phases: tuple[Phase, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    options: Options = field(default_factory=Options)
    history: HistoryPolicy = field(default_factory=HistoryPolicy)


class RunState(Enum):
    """State of a run."""

    RUNNING = "running"
    WAITING_FOR_TOOLS = "waiting_for_tools"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """Result of a phase.

    Attributes:
        phase_id: the phase.
        input: the user message after substitution.
        completion: the model's answer.
        spent: usage of the whole phase, tool rounds and repairs included.
        turns_before: number of conversation turns before the phase.
        started: start, in microseconds since 1970.
        ended: end, in microseconds since 1970.
    """

    phase_id: str
    input: str
    completion: Completion
    spent: Spent
    turns_before: int
    started: int
    ended: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Position of a run within its phases.

    Attributes:
        phase: index of the current or failed phase, from 0; the number of phases when all are done.
        turns_before: number of conversation turns before this phase.
        started: start of the phase, in microseconds since 1970.
        answered: tool results of each round of the phase that has them.
        pending: the calls whose results the run waits for.
        worked: working time in microseconds; waiting for tool results does not count.
        spent: usage of the run so far.
    """

    phase: int = 0
    turns_before: int = 0
    started: int = 0
    answered: tuple[tuple[ToolResult, ...], ...] = ()
    pending: tuple[ToolCall, ...] = ()
    worked: int = 0
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an agent.

    Attributes:
        run_id: its id.
        manifest: the agent's definition.
        inputs: the inputs, by name.
        budget: the maximum usage; None means no cap.
        conversation_id: the conversation that holds its history.
        created: creation time, in microseconds since 1970.
        updated: time of the last recorded event, in microseconds since 1970.
        parent_id: the run whose phase this run repeats; None for none.
        state: the current state.
        progress: position within the phases.
        results: results of the completed phases, in order.
        error: the error of a failed run.
        last_sequence: sequence number of the last recorded event.
    """

    run_id: str
    manifest: Manifest
    inputs: dict[str, str]
    budget: Budget | None
    conversation_id: str
    created: int
    updated: int
    parent_id: str | None = None
    state: RunState = RunState.RUNNING
    progress: Progress = field(default_factory=Progress)
    results: tuple[PhaseResult, ...] = ()
    error: PeripetyError | None = None
    last_sequence: int = 0

    @property
    def phase(self) -> Phase | None:
        """Return the current or failed phase; None when all phases are done."""
        phases = self.manifest.phases
        return phases[self.progress.phase] if self.progress.phase < len(phases) else None


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase starts, or restarts after an interruption: earlier events of the phase are void."""

    phase_id: str
    input: str


@dataclass(frozen=True, slots=True)
class PhaseCompleted:
    """A phase is complete."""

    result: PhaseResult


@dataclass(frozen=True, slots=True)
class ToolsRequested:
    """The run waits for tool results; the last event until it is continued."""

    phase_id: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is completed, failed or cancelled (see its state); the last event."""

    run: Run


RunEvent: TypeAlias = (
    PhaseStarted
    | TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | Repairing
    | PhaseCompleted
    | ToolsRequested
    | RunEnded
)
