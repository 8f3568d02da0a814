"""The end of a run: what scenarios miss is added, what adds nothing is left out, and all is measured."""

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
    """A suite that is done.

    Attributes:
        scenarios: handwritten ones, then written ones that add something, then directed ones.
        directed: the scenarios that were found by the engine.
        report: how all of them fare.
        left: what there was no time to find out, each in a few words.
    """

    scenarios: tuple[TestScenario, ...]
    directed: tuple[TestScenario, ...]
    report: VerificationReport
    left: tuple[str, ...] = ()

    def findings(self) -> Iterator[Finding]:
        """A warning, where something was not found out."""
        if self.left:
            message = f"there was no time to find out {'; '.join(self.left)}"
            yield Finding("MEASURED_IN_PART", "", message, Severity.WARNING)


def is_of_want_of_time(finding: Finding) -> bool:
    """Whether it says that with more time there is more to find out."""
    return finding.code == "MEASURED_IN_PART"


def finished(
    policy: Policy,
    scenarios: Sequence[TestScenario],
    *,
    directed: bool = True,
    mutation: bool = True,
    is_late: Callable[[], bool] = lambda: False,
) -> Finished:
    """Make the final suite of scenarios that all pass.

    Without the time to choose, all of them are kept, and none is added.

    Args:
        policy: the policy.
        scenarios: handwritten and written ones.
        directed: whether to add what they miss.
        mutation: whether to measure the mutation score.
        is_late: whether the time that it may take is over.
    """
    subject = Subject(policy, is_late)
    left: tuple[str, ...] = ()
    try:
        kept = (completed if directed else least)(subject, scenarios)
    except OutOfTimeError:
        kept, left = tuple(scenarios), ("which scenarios add something",)
    done = measured(subject, kept, mutation=mutation)
    made = tuple(scenario for scenario in kept if scenario.source is ScenarioSource.DIRECTED)
    return Finished(kept, made, done.report, (*left, *done.left))
