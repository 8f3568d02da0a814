"""Evaluation of a valid document: proofs first, then the difficulty gate, then a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import InternalError
from peripety.scenarios.batch.model import verdict_on
from peripety.scenarios.certificates.certifying import certificate_of
from peripety.scenarios.certificates.document import encode
from peripety.scenarios.gate import verdict_of
from peripety.scenarios.model import Level, errors_among
from peripety.scenarios.proving import proved

if TYPE_CHECKING:
    from peripety.scenarios.batch.model import BatchOptions, Verdict
    from peripety.sim import Checked
    from peripety.workers import Worker

__all__ = ["played"]


async def played(checked: Checked, options: BatchOptions, worker: Worker) -> Verdict:
    """Evaluate a compiled document, from `Level.DRY_RUN` on.

    Raises:
        ResourceExhaustedError: the evaluation exceeds the time limit.
    """
    program = checked.program
    if program is None:
        raise InternalError("A document with errors was to be played")
    findings = [*checked.findings, *await worker.run(proved, program)]
    if errors_among(findings):
        return verdict_on(checked.spec_hash, findings)
    gate = await verdict_of(program, options.dry_run, worker)
    findings += gate.findings
    if errors_among(findings) or options.level < Level.CERTIFICATE:
        return verdict_on(checked.spec_hash, findings, gate.report)
    certificate = await certificate_of(program, options.certificate, worker)
    findings += [finding for finding in certificate.findings if finding not in findings]
    return verdict_on(checked.spec_hash, findings, gate.report, encode(certificate))
