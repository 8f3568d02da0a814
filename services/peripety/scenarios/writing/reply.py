"""What a model is told about its answer, as the next message of the conversation."""

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
    """What became of an answer.

    Attributes:
        findings: what is wrong, errors first.
        document: what the findings are about.
        left_out: parts that the answer changed and that stay, because nothing was wrong with them.
        undone: parts that are as they were, because what had been mended was wrong again; "" is all of them.
        moved: numbers that the engine moved.
    """

    findings: tuple[Finding, ...]
    document: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    moved: tuple[NumberEdit, ...] = ()

    def message(self) -> dict[str, Any]:
        """The message as a JSON object; what there is nothing of is not in it, and long lists are cut."""
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
            # Whoever wrote the part knows it by its id, not by its place.
            told["part"] = part
        if finding.severity is Severity.WARNING:
            told["severity"] = finding.severity.value
        return told
