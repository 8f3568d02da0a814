"""What scenarios are made of: the work that makes them as events, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from peripety.errors import Finding, Severity
from peripety.gateway.model import Budget, Spent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from peripety.scenarios.certificates.model import Certificate
    from peripety.sim import DryRunReport, Persona

__all__ = [
    "CompileEvent",
    "Compiled",
    "CompiledScenario",
    "Completed",
    "Draft",
    "DryRunOptions",
    "FoundWrong",
    "GenerationEvent",
    "GenerationLimits",
    "GenerationOrder",
    "Level",
    "NotCompiled",
    "NotGenerated",
    "NumberEdit",
    "NumbersMoved",
    "Progress",
    "Rewritten",
    "RuleEdit",
    "RuleEditKind",
    "ScenarioRecord",
    "ScenarioSource",
    "ScenarioSummary",
    "Stage",
    "errors_among",
]


def errors_among(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings that reject a document."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


class Stage(Enum):
    """What a piece of work is busy with."""

    AUTHORING = "authoring"
    VALIDATING = "validating"
    COMPILING = "compiling"
    DRY_RUNNING = "dry_running"
    REPAIRING = "repairing"
    CERTIFYING = "certifying"
    STORING = "storing"


class Level(IntEnum):
    """How much of a specification is checked; each level includes those before it."""

    SCHEMA = 1
    STATIC = 2
    DRY_RUN = 3
    CERTIFICATE = 4


@dataclass(frozen=True, slots=True)
class Progress:
    """The work went on.

    Attributes:
        stage: what it is busy with.
        message: one short sentence for a person.
        fraction: the share of the whole that is done, 0 … 1; never decreases.
        spent: what was used of language models so far.
    """

    stage: Stage
    message: str
    fraction: float
    spent: Spent = field(default_factory=Spent)


class RuleEditKind(Enum):
    """Whether a part was added, removed or changed."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class RuleEdit:
    """One difference between two documents.

    Attributes:
        kind: what happened to the part.
        path: JSON Pointer of the part, in the document that has it (the new one for a change).
        before: the part before, as JSON; None when it was added.
        after: the part after, as JSON; None when it was removed.
        summary: the difference in one sentence.
    """

    kind: RuleEditKind
    path: str
    before: bytes | None
    after: bytes | None
    summary: str


@dataclass(frozen=True, slots=True)
class NumberEdit:
    """One number that was moved.

    Attributes:
        path: its JSON Pointer.
        before: what it was.
        after: what it is.
        summary: the same in a sentence that names the rule.
    """

    path: str
    before: float
    after: float
    summary: str = ""


@dataclass(frozen=True, slots=True)
class DryRunOptions:
    """How to simulate.

    Attributes:
        persona: who plays.
        seed: what the seeds of the runs follow from; the specification's own by default.
        max_runs: runs after which the point estimate decides.
        horizon: most turns of a run; the specification's own by default.
    """

    persona: Persona = "random"
    seed: int | None = None
    max_runs: int = 4096
    horizon: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """Caps on the model work of one request.

    Attributes:
        answers: most answers of the model, refused ones included.
        budget: most calls, tokens, money and time of all of them together.
    """

    answers: int = 4
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class GenerationOrder:
    """What to write a specification about.

    Attributes:
        description: any text, or none.
        seed: seed of the scenario; the description decides when absent.
        model: as in `GenerateRequest.model`.
        level: what the result must pass.
        limits: caps on the model work.
        refresh: whether to write anew although the same was written before.
    """

    description: str
    seed: int | None = None
    model: str | None = None
    level: Level = Level.CERTIFICATE
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    refresh: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A whole specification as the model proposed it; it may be wrong.

    Attributes:
        document: the document, as JSON.
        attempt: which answer of the model it is, from 1.
        spent: what the answer used; None while that is not known.
    """

    document: bytes
    attempt: int
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class FoundWrong:
    """What is wrong with the present draft."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The model wrote parts of its specification again after findings.

    Attributes:
        document: the whole document now, as JSON; it may still be wrong.
        attempt: which answer of the model it is, from 2.
        edits: what changed.
        spent: what the answer used; None while that is not known.
    """

    document: bytes
    attempt: int
    edits: tuple[RuleEdit, ...]
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class NumbersMoved:
    """Numbers were moved because the specification missed its budget in the dry-run `before`."""

    edits: tuple[NumberEdit, ...]
    before: DryRunReport


@dataclass(frozen=True, slots=True)
class Completed:
    """The specification is finished; the last event.

    Attributes:
        document: the canonical specification.
        findings: warnings that remain, such as how it came about.
        attempts: answers of the model that it took.
        spent: what was used of language models.
        model: who wrote it, as `provider/model`.
        without_model: whether rules wrote it, without any language model.
        certificate: its certificate, when one was ordered.
        from_cache: whether it was written earlier for the same order, so that no model was asked.
    """

    document: bytes
    findings: tuple[Finding, ...]
    attempts: int
    spent: Spent
    model: str
    without_model: bool
    certificate: Certificate | None = None
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class NotGenerated:
    """Nothing passed within the attempts or the budget; the last event."""

    findings: tuple[Finding, ...]
    attempts: int
    spent: Spent


GenerationEvent: TypeAlias = (
    Progress | Draft | FoundWrong | Rewritten | NumbersMoved | Completed | NotGenerated
)


@dataclass(frozen=True, slots=True)
class CompiledScenario:
    """One version of a stored scenario: what is played.

    Attributes:
        scenario_id: the same for all its versions.
        name: from the specification.
        spec_hash: SHA-256 of `document` in hex; names the version.
        document: the canonical specification.
        create_time: when this version was first stored.
    """

    scenario_id: str
    name: str
    spec_hash: str
    document: bytes
    create_time: datetime


@dataclass(frozen=True, slots=True)
class ScenarioRecord:
    """A stored scenario and how it was accepted.

    Attributes:
        scenario: what is played.
        dry_run: the dry-run that it passed.
        edits: the numbers that were moved for that.
        findings: warnings that remain.
        certificate_hash: names its latest certificate; None when it has none.
    """

    scenario: CompiledScenario
    dry_run: DryRunReport
    edits: tuple[NumberEdit, ...]
    findings: tuple[Finding, ...]
    certificate_hash: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioSummary:
    """A stored version without its weight."""

    scenario_id: str
    name: str
    spec_hash: str
    fail_rate: float
    create_time: datetime
    certificate_hash: str | None = None


class ScenarioSource(Protocol):
    """Where sessions get the scenarios that they play."""

    async def compiled(self, scenario_id: str, spec_hash: str | None = None) -> CompiledScenario:
        """A stored scenario, in its latest version unless a version is named.

        Raises:
            NotFoundError: there is no such scenario or version.
        """
        ...

    async def certificate_of(self, scenario_id: str, spec_hash: str) -> bytes | None:
        """The document of the latest certificate of a version; None when it has none, or is not stored."""
        ...


@dataclass(frozen=True, slots=True)
class Compiled:
    """Stored and ready to be played; the last event."""

    record: ScenarioRecord


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """Refused, and nothing stored; the last event. The dry-run is the last one, when it came to one."""

    findings: tuple[Finding, ...]
    dry_run: DryRunReport | None = None


CompileEvent: TypeAlias = Progress | NumbersMoved | Compiled | NotCompiled
