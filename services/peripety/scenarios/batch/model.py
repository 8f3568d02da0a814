"""Batch options and the verdict of a document."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from peripety.errors import Finding, Severity
from peripety.scenarios.certificates.model import CertificateOptions
from peripety.scenarios.model import DryRunOptions, Level, errors_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.errors import PeripetyError
    from peripety.sim import DryRunReport

__all__ = ["MAX_FINDINGS", "BatchOptions", "Document", "Verdict", "verdict_on"]

T = TypeVar("T")

MAX_FINDINGS = 50
"""The maximum number of reported findings per document."""

_DRY_RUN_SECONDS = 10.0
_CERTIFICATE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Validation options of each document.

    Attributes:
        level: the validation level.
        dry_run: simulation options, from `Level.DRY_RUN` on.
        certificate: certificate options, at `Level.CERTIFICATE`.
        seconds: the maximum thread time per document; by default 10 s, and 120 s for a certificate. It
            decides whether there is a verdict, never which one.
    """

    level: Level = Level.STATIC
    dry_run: DryRunOptions = field(default_factory=DryRunOptions)
    certificate: CertificateOptions = field(default_factory=CertificateOptions)
    seconds: float | None = None

    @property
    def allowance(self) -> float:
        """Return the time limit of one document, in seconds."""
        usual = _CERTIFICATE_SECONDS if self.level is Level.CERTIFICATE else _DRY_RUN_SECONDS
        return usual if self.seconds is None else self.seconds


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of validating a document.

    Attributes:
        findings: errors first, then warnings; at most `MAX_FINDINGS`.
        total: the number of all findings.
        spec_hash: hash of the content; empty if the document is not acceptable JSON.
        dry_run: the runs without details; None if it was not simulated.
        certificate: the certificate document; None without one.
        error: the reason for a missing verdict, if it is not an error of the document.
    """

    findings: tuple[Finding, ...] = ()
    total: int = 0
    spec_hash: str = ""
    dry_run: DryRunReport | None = None
    certificate: bytes | None = None
    error: PeripetyError | None = None

    @property
    def accepted(self) -> bool:
        """Return True if the document passes the requested level."""
        return self.error is None and not errors_among(self.findings)


Document: TypeAlias = "tuple[T, bytes | Verdict]"
"""A name chosen by the caller, and the bytes, or the verdict of an unreadable document."""


def verdict_on(
    spec_hash: str,
    findings: Sequence[Finding],
    dry_run: DryRunReport | None = None,
    certificate: bytes | None = None,
) -> Verdict:
    """Return the verdict for the findings of a document."""
    told = tuple(sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)[:MAX_FINDINGS])
    counts = replace(dry_run, detail=None) if dry_run and dry_run.detail else dry_run
    return Verdict(told, len(findings), spec_hash, counts, certificate)
