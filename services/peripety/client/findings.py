"""Conversion of findings to and from messages, common to all services and clients."""

from __future__ import annotations

from peripety.api.common.v1 import common_pb2 as common
from peripety.errors import Finding, Severity

__all__ = ["finding_from_proto", "finding_to_proto"]


def finding_to_proto(finding: Finding) -> common.Finding:
    """Return the message of a finding, with its remedy."""
    return common.Finding(
        code=finding.code,
        path=finding.path,
        message=finding.message,
        severity=common.Severity.Value(f"SEVERITY_{finding.severity.name}"),
        remedy=finding.remedy,
    )


def finding_from_proto(finding: common.Finding) -> Finding:
    """Return the finding of a message; a missing severity means error."""
    warning = finding.severity == common.SEVERITY_WARNING
    severity = Severity.WARNING if warning else Severity.ERROR
    return Finding(finding.code, finding.path, finding.message, severity)
