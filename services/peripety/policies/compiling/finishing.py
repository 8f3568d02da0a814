"""The end of a run: what scenarios miss is added, what adds nothing is left out, and all is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.policies.directing.choosing import smallest
from peripety.policies.directing.completing import complete
from peripety.policies.model import ScenarioSource
from peripety.policies.verifying.verifying import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.policies.model import TestScenario, VerificationReport
    from peripety.sim import Policy

__all__ = ["Finished", "finished"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A suite that is done.

    Attributes:
        scenarios: handwritten ones, then written ones that add something, then directed ones.
        directed: the scenarios that were found by the engine.
        report: how all of them fare.
    """

    scenarios: tuple[TestScenario, ...]
    directed: tuple[TestScenario, ...]
    report: VerificationReport


def finished(
    policy: Policy, scenarios: Sequence[TestScenario], *, directed: bool = True, mutation: bool = True
) -> Finished:
    """Make the final suite of scenarios that all pass.

    Args:
        policy: the policy.
        scenarios: handwritten and written ones.
        directed: whether to add what they miss.
        mutation: whether to measure the mutation score.
    """
    kept = (complete if directed else smallest)(policy, scenarios)
    return Finished(
        kept,
        tuple(scenario for scenario in kept if scenario.source is ScenarioSource.DIRECTED),
        verify(policy, kept, mutation=mutation),
    )
