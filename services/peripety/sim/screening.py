"""Many scenario documents at once: a core screens them, and the reference says what is wrong with the rest.

Findings have one author. All that a core may say of a document is that nothing is wrong with it.
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
    """What is known of a document.

    Attributes:
        findings: what `validate` finds.
        spec_hash: SHA-256 of the canonical document, in hex: the content address; empty when it is no JSON.
        program: the scenario, compiled when first wanted; None when there is an error among the findings.
    """

    findings: tuple[Finding, ...]
    spec_hash: str
    program: Program | None


def check_all(documents: Sequence[bytes], threads: int | None = None) -> list[Checked]:
    """Check many scenario documents, each on its own.

    Args:
        documents: scenario documents.
        threads: how many share the work, 1 … 256; as many as there are cores by default. Nothing else
            depends on it, and the core in Python has one.

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
    """What the reference finds."""
    try:
        accepted = canonical_document(document)
    except SpecError as error:
        return Checked(tuple(error.findings), "", None)
    findings = tuple(findings_of(loads(accepted)))
    if any(finding.severity is Severity.ERROR for finding in findings):
        return Checked(findings, hashlib.sha256(accepted).hexdigest(), None)
    program = load(accepted)
    return Checked(findings, program.spec_hash, program)
