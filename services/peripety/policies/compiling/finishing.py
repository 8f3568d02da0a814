"""The end of a run: what scenarios miss is added, what adds nothing is left out, and all is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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


def finished(policy: Policy, scenarios: Sequence[TestScenario]) -> Finished:
    """Make the final suite of scenarios that all pass."""
    directed: tuple[TestScenario, ...] = ()
    kept = (*scenarios, *directed)
    return Finished(kept, directed, verify(policy, kept))
