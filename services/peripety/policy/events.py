"""Events of an authoring run, from the first progress to the compiled policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety.policy.types import (
    AuditEntry,
    PolicyCompiled,
)

if TYPE_CHECKING:
    from peripety.errors import Finding
    from peripety.gateway.types.response import UsageTotal
    from peripety.policy.types import (
        CompilePhase,
        GenerationTurn,
        TestScenario,
        VerificationReport,
    )


@dataclass(frozen=True, slots=True)
class CompileProgress:
    """Progress of a run.

    Attributes:
        phase: the current phase.
        round: the repair round, from 1; 0 before the first.
        message: one short sentence for display.
        fraction: the completed share, 0 to 1; never decreases.
    """

    phase: CompilePhase
    round: int
    message: str
    fraction: float


@dataclass(frozen=True, slots=True)
class RulesWritten:
    """Rules were written or changed.

    Attributes:
        document: the current policy document.
        findings: findings about the rules.
    """

    document: bytes
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ScenariosWritten:
    """Scenarios were written.

    Attributes:
        scenarios: the new ones only.
        turn: the usage of the turn; None without a model call.
    """

    scenarios: tuple[TestScenario, ...]
    turn: GenerationTurn | None = None


@dataclass(frozen=True, slots=True)
class ScenariosVerified:
    """Scenarios were run.

    Attributes:
        round: the repair round, from 1; 0 before the first.
        report: the results.
    """

    round: int
    report: VerificationReport


@dataclass(frozen=True, slots=True)
class PolicyCompileFailed:
    """Rules and scenarios do not agree; the last event.

    Attributes:
        findings: the reasons and remedies.
        document: the latest policy document; empty if none was written.
        scenarios: the latest scenarios.
        verification: the last verification report; None before the first.
        audit: the audit log.
        spent: the usage of language models.
    """

    findings: tuple[Finding, ...]
    document: bytes
    scenarios: tuple[TestScenario, ...]
    verification: VerificationReport | None
    audit: tuple[AuditEntry, ...]
    spent: UsageTotal


CompileEvent: TypeAlias = (
    CompileProgress
    | RulesWritten
    | ScenariosWritten
    | ScenariosVerified
    | AuditEntry
    | PolicyCompiled
    | PolicyCompileFailed
)
"""An event of a compile run."""
