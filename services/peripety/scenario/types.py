"""Scenario types: orders, limits, events of generation, registration and amendment, and stored scenarios."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import UsageTotal

if TYPE_CHECKING:
    from datetime import datetime

    from peripety.certification.types import Certificate
    from peripety.engine import DryRunReport
    from peripety.engine.rule_text import RuleEdit
    from peripety.errors import Finding


class ProgressStage(Enum):
    """Stage of an operation."""

    AUTHORING = "authoring"
    VALIDATING = "validating"
    COMPILING = "compiling"
    DRY_RUNNING = "dry_running"
    REPAIRING = "repairing"
    CERTIFYING = "certifying"
    STORING = "storing"


class ValidationLevel(IntEnum):
    """Validation level of a specification; each level includes the lower ones."""

    SCHEMA = 1
    STATIC = 2
    DRY_RUN = 3
    CERTIFICATE = 4


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an operation.

    Attributes:
        stage: the current stage.
        message: one short sentence for display.
        fraction: the completed share of the work, 0 … 1; never decreases.
        spent: the model usage so far.
    """

    stage: ProgressStage
    message: str
    fraction: float
    spent: UsageTotal = field(default_factory=UsageTotal)


@dataclass(frozen=True, slots=True)
class NumberEdit:
    """Change of a number.

    Attributes:
        path: its JSON Pointer.
        before: the old value.
        after: the new value.
        summary: one sentence about the change, with the name of the rule.
    """

    path: str
    before: float
    after: float
    summary: str = ""


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """Caps on the model work of one request.

    Attributes:
        answers: the maximum number of answers, including rejected ones.
        budget: the maximum number of calls, tokens, money and time for all answers.
    """

    answers: int = 4
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class GenerationOrder:
    """Order of a generation.

    Attributes:
        description: the text; may be empty.
        seed: seed of the scenario; derived from the description if None.
        model: as in `GenerateRequest.model`.
        level: the level that the result must pass.
        limits: caps on the model work.
        refresh: True to ignore a cached result of the same order.
        language: language of names and texts as a BCP 47 tag; empty for that of the description.
    """

    description: str
    seed: int | None = None
    model: str | None = None
    level: ValidationLevel = ValidationLevel.CERTIFICATE
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    refresh: bool = False
    language: str = ""


@dataclass(frozen=True, slots=True)
class DraftProposed:
    """First proposal of a model, as a whole specification; not yet validated.

    Attributes:
        document: the document, as JSON.
        attempt: the number of the model's answer, from 1.
        spent: the usage of the answer; None if unknown.
    """

    document: bytes
    attempt: int
    spent: UsageTotal | None = None


@dataclass(frozen=True, slots=True)
class ValidationFailed:
    """Findings of the present draft."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class DraftRevised:
    """Revision of a draft by the model, after findings.

    Attributes:
        document: the whole document after the revision, as JSON; not yet validated.
        attempt: the number of the model's answer, from 2.
        edits: the differences.
        spent: the usage of the answer; None if unknown.
    """

    document: bytes
    attempt: int
    edits: tuple[RuleEdit, ...]
    spent: UsageTotal | None = None


@dataclass(frozen=True, slots=True)
class NumbersAdjusted:
    """Numbers were adjusted because the specification missed its budget in the dry-run `before`."""

    edits: tuple[NumberEdit, ...]
    before: DryRunReport


@dataclass(frozen=True, slots=True)
class SpecGenerated:
    """The specification is complete; the last event.

    Attributes:
        document: the canonical specification.
        findings: remaining warnings, including the way of its generation.
        attempts: the number of model answers.
        spent: the model usage.
        model: the author, as `provider/model`.
        without_model: True if rules wrote it, without any language model.
        certificate: its certificate, if requested.
        from_cache: True for a cached result of the same order, without a model request.
    """

    document: bytes
    findings: tuple[Finding, ...]
    attempts: int
    spent: UsageTotal
    model: str
    without_model: bool
    certificate: Certificate | None = None
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class SpecGenerationFailed:
    """No draft passed within the attempts or the budget; the last event.

    Attributes:
        findings: the findings of the best draft, then the limit that was met.
        attempts: the number of the model's answers.
        spent: the usage of the model.
        document: the best draft as JSON: the one that passed most checks, then with the fewest errors; empty
            without one.
    """

    findings: tuple[Finding, ...]
    attempts: int
    spent: UsageTotal
    document: bytes = b""


GenerationEvent: TypeAlias = (
    Progress
    | DraftProposed
    | ValidationFailed
    | DraftRevised
    | NumbersAdjusted
    | SpecGenerated
    | SpecGenerationFailed
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One version of a stored scenario.

    Attributes:
        scenario_id: the id, the same for all versions.
        name: the name from the specification.
        spec_hash: SHA-256 of `document` in hex; identifies the version.
        document: the canonical specification.
        create_time: the time when this version was first stored.
    """

    scenario_id: str
    name: str
    spec_hash: str
    document: bytes
    create_time: datetime


@dataclass(frozen=True, slots=True)
class ScenarioRecord:
    """Stored scenario with the record of its registration.

    Attributes:
        scenario: the version.
        dry_run: the dry-run that it passed.
        edits: the numbers that the repair moved.
        findings: remaining warnings.
        certificate_hash: the hash of its latest certificate; None without one.
    """

    scenario: Scenario
    dry_run: DryRunReport
    edits: tuple[NumberEdit, ...]
    findings: tuple[Finding, ...]
    certificate_hash: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioSummary:
    """Stored version without its document."""

    scenario_id: str
    name: str
    spec_hash: str
    fail_rate: float
    create_time: datetime
    certificate_hash: str | None = None


class ScenarioSource(Protocol):
    """Source of scenarios for sessions."""

    async def get_scenario(self, scenario_id: str, spec_hash: str | None = None) -> Scenario:
        """Return a stored scenario, in its latest version by default.

        Raises:
            NotFoundError: the scenario or version does not exist.
        """
        ...

    async def get_certificate_document(self, scenario_id: str, spec_hash: str) -> bytes | None:
        """Return the document of the latest certificate of a version; None without one."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioRegistered:
    """The scenario is stored; the last event."""

    record: ScenarioRecord


@dataclass(frozen=True, slots=True)
class RegistrationFailed:
    """The scenario was rejected and not stored; the last event. The dry-run is the last one, if any."""

    findings: tuple[Finding, ...]
    dry_run: DryRunReport | None = None


RegistrationEvent: TypeAlias = Progress | NumbersAdjusted | ScenarioRegistered | RegistrationFailed


@dataclass(frozen=True, slots=True)
class AmendmentOrder:
    """Order of an amendment.

    Attributes:
        scenario_id: the scenario; its latest version is amended.
        instruction: the change, in any language.
        expected_hash: hash of the version that the change is based on; None for the latest.
        model: as in `GenerateRequest.model`.
        level: the level that the result must pass, at least a dry-run; None for the level of the present
            version.
        limits: caps on the model work.
    """

    scenario_id: str
    instruction: str
    expected_hash: str | None = None
    model: str | None = None
    level: ValidationLevel | None = None
    limits: GenerationLimits = field(default_factory=GenerationLimits)


@dataclass(frozen=True, slots=True)
class ChangeProposed:
    """Proposed change; not yet validated.

    Attributes:
        edits: the differences to the present version.
        attempt: the number of the model's answer, from 1.
        spent: the usage of the answer.
    """

    edits: tuple[RuleEdit, ...]
    attempt: int
    spent: UsageTotal


@dataclass(frozen=True, slots=True)
class AmendmentCompleted:
    """The change is stored as the latest version; the last event."""

    record: ScenarioRecord
    edits: tuple[RuleEdit, ...]
    spent: UsageTotal


@dataclass(frozen=True, slots=True)
class AmendmentFailed:
    """The change was rejected and the scenario is unchanged; the last event."""

    findings: tuple[Finding, ...]
    spent: UsageTotal


AmendEvent: TypeAlias = (
    Progress | ChangeProposed | ValidationFailed | NumbersAdjusted | AmendmentCompleted | AmendmentFailed
)
