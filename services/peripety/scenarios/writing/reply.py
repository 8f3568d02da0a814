"""Feedback for a model about its answer, as the next message of the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import Severity
from peripety.scenarios.parts import name_at
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding
    from peripety.scenarios.model import NumberEdit

__all__ = ["Reply"]

_MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class Reply:
    """Feedback about an answer.

    Attributes:
        findings: the findings, errors first.
        document: the document of the findings.
        left_out: changes that were ignored, because the parts had no finding.
        undone: parts that were rolled back after a regression; "" is the whole document.
        moved: the moved numbers.
    """

    findings: tuple[Finding, ...]
    document: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    moved: tuple[NumberEdit, ...] = ()

    def message(self) -> dict[str, Any]:
        """Return the message as a JSON object; empty members are omitted, and long lists are truncated."""
        told = self.findings[:_MOST_TOLD]
        message = {
            "findings": [self._told(finding) for finding in told],
            "fixes": {finding.code: finding.remedy for finding in told if finding.remedy},
            "more_findings": len(self.findings) - len(told),
            "left_out": list(self.left_out[:_MOST_TOLD]),
            "undone": list(self.undone[:_MOST_TOLD]),
            "moved": [{"path": edit.path, "before": edit.before, "after": edit.after} for edit in self.moved],
        }
        return {key: value for key, value in message.items() if value}

    def _told(self, finding: Finding) -> dict[str, str]:
        told = {"code": finding.code, "path": finding.path, "message": finding.message}
        part = pointer(name_at(self.document, finding.path))
        if not f"{finding.path}/".startswith(f"{part}/"):
            # The author of a part knows its id, not its position.
            told["part"] = part
        if finding.severity is Severity.WARNING:
            told["severity"] = finding.severity.value
        return told
