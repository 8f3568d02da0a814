"""Agent manifest: phases, input templates, checks, and the types of agent runs.

All violations of a manifest and its inputs are collected before a run starts.

In the template of a phase, `{{name}}` is an input of the run, and `{{phases.a}}` is the answer of phase
`a`. All other text is literal, single braces too. Substituted text is not expanded again, so an input or an
answer cannot inject a placeholder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.conversations.conversation import HistoryPolicy
from peripety.gateway.request_checks import check_options, check_schema, check_tools
from peripety.gateway.types.message import Tool, ToolCall, ToolResult  # noqa: TC001 - read at run time
from peripety.gateway.types.request import Budget, GenerateRequest, GenerationOptions, ResponseSchema
from peripety.gateway.types.response import (
    Completion,
    ReasoningDelta,
    Repairing,
    TextDelta,
    ToolCallDelta,
    UsageTotal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from peripety.errors import PeripetyError


_PLACEHOLDER = re.compile(r"\{\{[ \t]*([^{}\n]*?)[ \t]*\}\}")
_PHASE_PREFIX = "phases."


def placeholder_names(template: str) -> tuple[str, ...]:
    """Return the placeholder names of a template, in order, without duplicates."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template)))


def phase_id_of(name: str) -> str | None:
    """Return the id of the phase that a placeholder refers to; None if it refers to an input."""
    return name.removeprefix(_PHASE_PREFIX) if name.startswith(_PHASE_PREFIX) else None


def render_template(template: str, inputs: Mapping[str, str], answers: Mapping[str, str]) -> str:
    """Substitute all placeholders of a template.

    Args:
        template: the text; every placeholder must have a value.
        inputs: the inputs of the run, by name.
        answers: the answers of earlier phases, by phase id.
    """

    def value(place: re.Match[str]) -> str:
        phase = phase_id_of(place[1])
        return inputs[place[1]] if phase is None else answers[phase]

    return _PLACEHOLDER.sub(value, template)


_PHASE_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MANIFEST_FIELD = ".manifest"


def check_manifest(manifest: Manifest, inputs: Mapping[str, str]) -> None:
    """Reject a manifest that cannot run with these inputs.

    Raises:
        InvalidArgumentError: a field is wrong, or no phase uses an input; the violations name all of them.
    """
    violations = list(_manifest_violations(manifest))
    for index, phase in enumerate(manifest.phases):
        field = f"{_MANIFEST_FIELD}.phases[{index}]"
        violations += _phase_violations(field, manifest, index, phase, inputs)
        if phase.phase_id in {earlier.phase_id for earlier in manifest.phases[:index]}:
            violations.append(FieldViolation(f"{field}.phase_id", f"must be unique: '{phase.phase_id}'"))
    used = {name for phase in manifest.phases for name in placeholder_names(phase.input_template)}
    violations += [
        FieldViolation(
            f".inputs[{name}]",
            f"is not used by any phase; remove it, or add {{{{{name}}}}} to a template",
        )
        for name in inputs
        if name not in used
    ]
    _raise_if_any(violations)


def check_replacement(manifest: Manifest, index: int, inputs: Mapping[str, str]) -> None:
    """Reject a replacement phase that cannot run at its position in the manifest.

    Raises:
        InvalidArgumentError: a field of the phase is wrong.
    """
    _raise_if_any(list(_phase_violations(".phase", manifest, index, manifest.phases[index], inputs)))


def _manifest_violations(manifest: Manifest) -> Iterator[FieldViolation]:
    if not manifest.name.strip():
        yield FieldViolation(f"{_MANIFEST_FIELD}.name", "is required")
    if not manifest.phases:
        yield FieldViolation(f"{_MANIFEST_FIELD}.phases", "must be at least one")
    yield from _nested_violations(f"{_MANIFEST_FIELD}.", lambda: check_tools(manifest.tools, None))
    yield from _options_violations(f"{_MANIFEST_FIELD}.options", manifest.options)


def _phase_violations(
    field: str,
    manifest: Manifest,
    index: int,
    phase: Phase,
    inputs: Mapping[str, str],
) -> Iterator[FieldViolation]:
    if not _PHASE_ID.fullmatch(phase.phase_id):
        yield FieldViolation(f"{field}.phase_id", "must be lower_snake_case, of at most 64 characters")
    if not phase.input_template.strip():
        yield FieldViolation(f"{field}.input_template", "is required: the user message of the phase")
    earlier = {before.phase_id for before in manifest.phases[:index]}
    for name in placeholder_names(phase.input_template):
        problem = _placeholder_problem(name, inputs, earlier)
        if problem is not None:
            yield FieldViolation(f"{field}.input_template", problem)
    offered = {tool.name for tool in manifest.tools}
    for place, name in enumerate(phase.tool_names):
        if name not in offered:
            yield FieldViolation(f"{field}.tool_names[{place}]", f"is not a tool of the manifest: '{name}'")
    if phase.max_tool_rounds < 0:
        yield FieldViolation(f"{field}.max_tool_rounds", "must be 0, for the default, or more")
    yield from _options_violations(f"{field}.options", phase.options)
    if phase.schema is not None:
        schema = phase.schema
        yield from _nested_violations(f"{field}.", lambda: check_schema(schema))
        if schema.advisory:
            yield FieldViolation(f"{field}.schema.advisory", "must be unset: a run repairs invalid answers")


def _placeholder_problem(name: str, inputs: Collection[str], earlier: Collection[str]) -> str | None:
    phase = phase_id_of(name)
    if phase is None:
        return None if name in inputs else f"refers to {{{{{name}}}}}, which .inputs does not contain"
    return (
        None if phase in earlier else f"refers to {{{{{name}}}}}, but no earlier phase has the id '{phase}'"
    )


def _options_violations(field: str, options: GenerationOptions) -> Iterator[FieldViolation]:
    request = GenerateRequest(None, (), **options.set_fields())
    return _nested_violations(f"{field}.", lambda: check_options(request))


def _nested_violations(prefix: str, check: Callable[[], None]) -> Iterator[FieldViolation]:
    """Yield the violations that a gateway check raises, with field paths inside the manifest."""
    try:
        check()
    except InvalidArgumentError as error:
        for violation in error.violations:
            yield FieldViolation(prefix + violation.field, violation.reason)


def _raise_if_any(violations: list[FieldViolation]) -> None:
    if violations:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in violations)
        raise InvalidArgumentError(
            f"manifest invalid: {reasons}",
            code="MANIFEST_INVALID",
            violations=violations,
        )


_DEFAULT_TOOL_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Phase:
    """One model request of an agent, with its own instructions.

    Attributes:
        phase_id: unique in its manifest.
        input_template: the user message, with placeholders; see `render_template`.
        system: instructions of this phase; empty for none.
        options: generation options; unset fields fall back to the manifest's.
        tool_names: the tools that the phase may call.
        schema: JSON Schema of the answer; None for free text.
        max_tool_rounds: the maximum number of tool-call rounds; 0 uses the engine's default.
    """

    phase_id: str
    input_template: str
    system: str = ""
    options: GenerationOptions = field(default_factory=GenerationOptions)
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
    options: GenerationOptions = field(default_factory=GenerationOptions)
    history: HistoryPolicy = field(default_factory=HistoryPolicy)


class AgentRunState(Enum):
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
    spent: UsageTotal
    turns_before: int
    started: int
    ended: int


@dataclass(frozen=True, slots=True)
class PhaseProgress:
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
    spent: UsageTotal = field(default_factory=UsageTotal)


@dataclass(frozen=True, slots=True)
class AgentRun:
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
    state: AgentRunState = AgentRunState.RUNNING
    progress: PhaseProgress = field(default_factory=PhaseProgress)
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
class AgentRunEnded:
    """The run is completed, failed or cancelled (see its state); the last event."""

    run: AgentRun


AgentRunEvent: TypeAlias = (
    PhaseStarted
    | TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | Repairing
    | PhaseCompleted
    | ToolsRequested
    | AgentRunEnded
)
