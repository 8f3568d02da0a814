"""Finalization of a run: complete the suite, minimize it and measure it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity
from peripety.policies.directing.choosing import least
from peripety.policies.directing.completing import completed
from peripety.policies.model import ScenarioSource
from peripety.policies.mutating.subject import OutOfTimeError, Subject
from peripety.policies.verifying.verifying import measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peripety.policies.model import TestScenario, VerificationReport
    from peripety.sim import Policy

__all__ = ["Finished", "finished", "is_of_want_of_time"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The final suite.

    Attributes:
        scenarios: handwritten ones, then written ones that add coverage, then generated ones.
        directed: the scenarios that the engine generated for gaps.
        report: the verification report of all scenarios.
        left: the parts that the time limit skipped, each in a few words.
    """

    scenarios: tuple[TestScenario, ...]
    directed: tuple[TestScenario, ...]
    report: VerificationReport
    left: tuple[str, ...] = ()

    def findings(self) -> Iterator[Finding]:
        """Yield a warning if the time limit skipped a part."""
        if self.left:
            message = f"time limit reached; not determined: {'; '.join(self.left)}"
            yield Finding("MEASURED_IN_PART", "", message, Severity.WARNING)


def is_of_want_of_time(finding: Finding) -> bool:
    """Return True if a finding reports a part that the time limit skipped."""
    return finding.code == "MEASURED_IN_PART"


def finished(
    policy: Policy,
    scenarios: Sequence[TestScenario],
    *,
    directed: bool = True,
    mutation: bool = True,
    is_late: Callable[[], bool] = lambda: False,
) -> Finished:
    """Build the final suite from scenarios that all pass.

    If the time limit is reached during the selection, all scenarios are included and none is generated.

    Args:
        policy: the policy.
        scenarios: handwritten and written ones.
        directed: True to generate scenarios for coverage gaps.
        mutation: True to measure the mutation score.
        is_late: returns True once the time limit is reached.
    """
    subject = Subject(policy, is_late)
    left: tuple[str, ...] = ()
    try:
        kept = (completed if directed else least)(subject, scenarios)
    except OutOfTimeError:
        kept, left = tuple(scenarios), ("the scenarios that add coverage",)
    done = measured(subject, kept, mutation=mutation)
    made = tuple(scenario for scenario in kept if scenario.source is ScenarioSource.DIRECTED)
    return Finished(kept, made, done.report, (*left, *done.left))
