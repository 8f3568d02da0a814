"""What an agent is, and a run of one."""

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
    """One question of an agent, with its own instructions.

    Attributes:
        phase_id: names it in its manifest.
        input_template: what the user says, with places to fill in; see `templates`.
        system: its instructions; empty for none.
        options: how to generate; what is unset is the manifest's.
        tool_names: the tools that it may call.
        schema: what its answer has to be valid against; None for free text.
        max_tool_rounds: the most rounds of tool calls; 0 leaves it to the engine.
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
        """The most rounds of tool calls."""
        return self.max_tool_rounds or _DEFAULT_TOOL_ROUNDS


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an agent does.

    Attributes:
        name: its name, for people.
        phases: in order, at least one.
        system: instructions that hold in all phases.
        tools: those that phases can name.
        options: how to generate, unless a phase says otherwise.
        history: how much of the history is sent.
    """

    name: str
    phases: tuple[Phase, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    options: Options = field(default_factory=Options)
    history: HistoryPolicy = field(default_factory=HistoryPolicy)


class RunState(Enum):
    """Where a run stands."""

    RUNNING = "running"
    WAITING_FOR_TOOLS = "waiting_for_tools"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """What a phase came to.

    Attributes:
        phase_id: the phase.
        input: what the user said, with everything filled in.
        completion: what the model answered.
        spent: what all of it used, tool rounds and repairs included.
        turns_before: turns that the conversation had before the phase.
        started: when, in microseconds since 1970.
        ended: when, in microseconds since 1970.
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
    """How far a run is inside of its phases.

    Attributes:
        phase: which phase it is in, or failed in, from 0; the number of phases when all are done.
        turns_before: turns that the conversation had before this phase.
        started: when the phase began, in microseconds since 1970.
        answered: the results of tools for each round of the phase that has them.
        pending: the calls whose results the run waits for.
        worked: the time that was spent working, in microseconds; waiting for tools is no work.
        spent: what the run used so far.
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
        manifest: what it does.
        inputs: what it was given, by name.
        budget: the most that it may use; None is no cap.
        conversation_id: the conversation that holds its history.
        created: when, in microseconds since 1970.
        updated: when its last event was recorded, in microseconds since 1970.
        parent_id: the run whose phase it does anew; None for none.
        state: where it stands.
        progress: how far it is.
        results: the phases that are done, in order.
        error: why it failed.
        last_sequence: sequence of the last recorded event.
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
        """The phase that it is in, or failed in; None when all are done."""
        phases = self.manifest.phases
        return phases[self.progress.phase] if self.progress.phase < len(phases) else None


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase begins, or begins anew after an interruption: its events that came before are void."""

    phase_id: str
    input: str


@dataclass(frozen=True, slots=True)
class PhaseCompleted:
    """A phase is done."""

    result: PhaseResult


@dataclass(frozen=True, slots=True)
class ToolsRequested:
    """The run waits for tools; the last event until it is continued."""

    phase_id: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is completed, failed or cancelled, as its state says; the last event."""

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
