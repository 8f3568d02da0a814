"""Serialization of verdicts, and the hash of their options."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.scenarios.batch.model import Verdict
from peripety.scenarios.model import Level
from peripety.sim import BACKEND_VERSION, RNG_VERSION, DryRunReport

if TYPE_CHECKING:
    from peripety.scenarios.batch.model import BatchOptions

__all__ = ["asked", "from_record", "record_of"]


def asked(options: BatchOptions) -> str:
    """Return a hash of everything besides the document that determines a verdict."""
    means: dict[str, Any] = {"engine": BACKEND_VERSION, "rng": RNG_VERSION, "level": options.level.name}
    if options.level >= Level.DRY_RUN:
        means["dry_run"] = asdict(options.dry_run)
    if options.level >= Level.CERTIFICATE:
        means["certificate"] = asdict(options.certificate)
    return hashlib.sha256(json.dumps(means, sort_keys=True).encode()).hexdigest()


def record_of(verdict: Verdict) -> bytes:
    """Encode a verdict as JSON."""
    record: dict[str, Any] = {"hash": verdict.spec_hash, "total": verdict.total}
    if verdict.findings:
        record["findings"] = [(f.code, f.path, f.message, f.severity.value) for f in verdict.findings]
    if verdict.dry_run:
        record["dry_run"] = _counts(verdict.dry_run)
    if verdict.certificate:
        record["certificate"] = verdict.certificate.decode()
    return json.dumps(record, separators=(",", ":")).encode()


def from_record(record: bytes) -> Verdict:
    """Decode a verdict from JSON."""
    read = json.loads(record)
    findings = tuple(
        Finding(code, path, message, Severity(severity))
        for code, path, message, severity in read.get("findings", ())
    )
    dry_run = DryRunReport.of(read["dry_run"]) if "dry_run" in read else None
    certificate = read["certificate"].encode() if "certificate" in read else None
    return Verdict(findings, read["total"], read["hash"], dry_run, certificate)


def _counts(report: DryRunReport) -> dict[str, Any]:
    counts = {name: getattr(report, name) for name in DryRunReport.__slots__}
    return {**counts, "errors": [asdict(error) for error in report.errors]}
