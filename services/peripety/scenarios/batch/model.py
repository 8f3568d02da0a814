"""What a batch is asked, and what it says of each document."""

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
"""Most findings that are told of one document."""

_DRY_RUN_SECONDS = 10.0
_CERTIFICATE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How to check each document.

    Attributes:
        level: how much is checked.
        dry_run: how to simulate, from `Level.DRY_RUN` on.
        certificate: what to measure, at `Level.CERTIFICATE`.
        seconds: most time that one document may take of a thread; by default 10 s, and 120 s for a
            certificate. It decides whether there is a verdict, never which.
    """

    level: Level = Level.STATIC
    dry_run: DryRunOptions = field(default_factory=DryRunOptions)
    certificate: CertificateOptions = field(default_factory=CertificateOptions)
    seconds: float | None = None

    @property
    def allowance(self) -> float:
        """Seconds that one document may take."""
        usual = _CERTIFICATE_SECONDS if self.level is Level.CERTIFICATE else _DRY_RUN_SECONDS
        return usual if self.seconds is None else self.seconds


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of checking a document.

    Attributes:
        findings: errors first, then warnings; at most `MAX_FINDINGS`.
        total: how many findings there are.
        spec_hash: names the content; empty when the document is not acceptable JSON.
        dry_run: the runs, when it came to them, without their detail.
        certificate: the document of the certificate, when it came to one.
        error: why there is no verdict, when the fault is not the document's.
    """

    findings: tuple[Finding, ...] = ()
    total: int = 0
    spec_hash: str = ""
    dry_run: DryRunReport | None = None
    certificate: bytes | None = None
    error: PeripetyError | None = None

    @property
    def accepted(self) -> bool:
        """Whether the document passed everything that was asked for."""
        return self.error is None and not errors_among(self.findings)


Document: TypeAlias = "tuple[T, bytes | Verdict]"
"""Whatever names a document to the caller, and its bytes, or the verdict on what could not be read."""


def verdict_on(
    spec_hash: str,
    findings: Sequence[Finding],
    dry_run: DryRunReport | None = None,
    certificate: bytes | None = None,
) -> Verdict:
    """The verdict that findings come to."""
    told = tuple(sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)[:MAX_FINDINGS])
    counts = replace(dry_run, detail=None) if dry_run and dry_run.detail else dry_run
    return Verdict(told, len(findings), spec_hash, counts, certificate)
