"""Shared state of an authoring run: order, gateway, audit log, warnings and progress."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.policies.model import AuditEntry, CompilePhase, Progress

if TYPE_CHECKING:
    from peripety.errors import Finding, PeripetyError
    from peripety.policies.compiling.artifacts import Artifacts
    from peripety.policies.compiling.metering import MeteredGateway
    from peripety.policies.model import (
        CompileOrder,
        DiscardedScenario,
        Judgement,
        RulePatch,
        ScenarioCorrection,
    )

__all__ = ["ENGINE", "Context", "GivenUpError", "by_model", "is_of_answer"]

ENGINE = "engine"

_OF_ANSWER = frozenset({"ANSWER_INVALID", "ANSWER_REFUSED", "CONTEXT_LENGTH_EXCEEDED"})


class GivenUpError(Exception):
    """The run ends without a result; the findings state the reasons."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__()
        self.findings = findings


@dataclass
class Context:
    """Shared state of a run.

    Attributes:
        order: the order.
        gateway: the model gateway, limited to the budget.
        artifacts: the cache of model output.
        round: the repair round, from 1; 0 before the first.
        audit: all decisions so far.
        warnings: warnings for the author of the policy.
    """

    order: CompileOrder
    gateway: MeteredGateway
    artifacts: Artifacts
    round: int = 0
    audit: list[AuditEntry] = field(default_factory=list)
    warnings: dict[Finding, None] = field(default_factory=dict)
    _furthest: float = 0.0

    def note(
        self, actor: str, decision: ScenarioCorrection | DiscardedScenario | RulePatch | Judgement
    ) -> AuditEntry:
        """Add a decision to the audit log."""
        entry = AuditEntry(self.round, actor, decision, time.time())
        self.audit.append(entry)
        return entry

    def warn(self, finding: Finding) -> None:
        """Add a warning once."""
        self.warnings[finding] = None

    def progress(self, phase: CompilePhase, message: str, share: float = 0.0) -> Progress:
        """Return a progress event; `share` is the completed share of the phase."""
        begin, end = self._part(phase)
        self._furthest = max(self._furthest, begin + (end - begin) * share)
        return Progress(phase, self.round, message, self._furthest)

    def _part(self, phase: CompilePhase) -> tuple[float, float]:
        """Return the start and end of a phase as shares of the run."""
        fixed = {
            CompilePhase.RULES: (0.0, 0.25),
            CompilePhase.SCENARIOS: (0.25, 0.45),
            CompilePhase.FILTERING: (0.45, 0.45),
            CompilePhase.MEASURING: (0.85, 0.98),
            CompilePhase.STORING: (0.98, 1.0),
        }
        if phase in fixed:
            return fixed[phase]
        length = 0.4 / (self.order.limits.repairs + 1)
        begin = 0.45 + min(self.round, self.order.limits.repairs) * length
        steps = {CompilePhase.VERIFYING: 0, CompilePhase.JUDGING: 1, CompilePhase.REPAIRING: 2}
        step = steps[phase] * length / 3
        return begin + step, begin + step + length / 3


def by_model(model: str) -> str:
    """Return the actor name of a model in the audit log."""
    return f"model:{model}"


def is_of_answer(error: PeripetyError) -> bool:
    """Return True if a call failed because of the content of the response."""
    return error.code in _OF_ANSWER
