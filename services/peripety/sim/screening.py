"""Bulk validation of scenario documents.

A backend accepts the documents without findings, in parallel. The reference validates the others, so findings
have one source: a backend reports only that a document has none.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity, SpecError
from peripety.sim._backend import CORE
from peripety.sim._values import loads
from peripety.sim.documents import canonical_document, findings_of, load
from peripety.sim.program import Program, require

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Checked", "check_all"]


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of validating one document.

    Attributes:
        findings: as from `validate`.
        spec_hash: SHA-256 of the canonical document, in hex: the content address; empty if it is not JSON.
        program: the scenario, compiled on first use; None if a finding is an error.
    """

    findings: tuple[Finding, ...]
    spec_hash: str
    program: Program | None


def check_all(documents: Sequence[bytes], threads: int | None = None) -> list[Checked]:
    """Validate many scenario documents independently.

    Args:
        documents: scenario documents.
        threads: number of threads, 1 … 256; one for each processor by default. The result does not depend on
            it, and the Python backend uses one.

    Raises:
        InvalidArgumentError: `threads` is out of range.
    """
    if threads is not None:
        require("threads", threads, 1, 256)
    screened = CORE.screen(documents, threads or os.cpu_count() or 1)
    return [
        _checked(document) if spotless is None else Checked((), spotless.spec_hash, Program(*spotless))
        for document, spotless in zip(documents, screened, strict=True)
    ]


def _checked(document: bytes) -> Checked:
    """Validate one document with the reference."""
    try:
        accepted = canonical_document(document)
    except SpecError as error:
        return Checked(tuple(error.findings), "", None)
    findings = tuple(findings_of(loads(accepted)))
    if any(finding.severity is Severity.ERROR for finding in findings):
        return Checked(findings, hashlib.sha256(accepted).hexdigest(), None)
    program = load(accepted)
    return Checked(findings, program.spec_hash, program)
