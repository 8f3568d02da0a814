"""Scenarios on the engine: what the rules say to each, and what that shows of rules and scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.policies.analysis.verdicts import Unreachable
from peripety.policies.model import ScenarioResult, VerificationReport
from peripety.policies.mutating.mutating import run, score, told
from peripety.policies.mutating.operators import mutations
from peripety.policies.verifying.coverage import coverage, reaching
from peripety.policies.verifying.exploring import explore
from peripety.policies.verifying.suite import Suite
from peripety.policies.verifying.targets import aims
from peripety.sim import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.policies.model import TestScenario
    from peripety.quality import Coverage, MutationScore
    from peripety.sim import Policy

__all__ = ["verify"]


def verify(
    policy: Policy, scenarios: Sequence[TestScenario], *, mutation: bool = False
) -> VerificationReport:
    """Run scenarios on the rules of a policy, and tell how both fit together.

    Only scenarios that pass reach anything, or kill a mutant.

    Args:
        policy: the policy.
        scenarios: the scenarios.
        mutation: whether to measure the mutation score as well.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
    """
    suite = Suite(policy, scenarios)
    return VerificationReport(tuple(_results(suite)), _coverage(suite), _score(suite) if mutation else None)


def _score(suite: Suite) -> MutationScore:
    runs = run(suite, [*mutations(suite.policy)])
    return score(told(suite.scenarios, done) for done in runs)


def _coverage(suite: Suite) -> tuple[Coverage, ...]:
    wanted = aims(suite.policy)
    reached = reaching(suite, wanted)
    covered = {aim.path for aim, by in zip(wanted, reached, strict=True) if by}
    missed = [aim for aim in wanted if aim.path not in covered]
    explored = zip(missed, explore(suite.policy, missed), strict=True)
    return coverage(wanted, covered, {aim.path for aim, how in explored if isinstance(how, Unreachable)})


def _results(suite: Suite) -> Iterator[ScenarioResult]:
    policy = suite.policy
    decided = policy.decide_many(suite.requests)
    deciding = policy.deciding(suite.requests)
    for number, scenario in enumerate(suite.scenarios):
        masked = _masked(suite, number, deciding[number])
        yield ScenarioResult(scenario, decided[number], masked)


def _masked(suite: Suite, number: int, deciding: int) -> str:
    """The rule that a scenario is meant to test, or that would meet it, when another decides before it."""
    if deciding < 0:
        return ""
    scenario = suite.scenarios[number]
    failed = not suite.passed >> number & 1
    for index in range(deciding + 1, len(suite.policy.rules)):
        rule = suite.policy.rules[index]
        if scenario.rule_id:
            meant = rule["id"] == scenario.rule_id
        else:
            meant = failed and scenario.expected_decision.is_met_by(Decision(rule["then"]))
        if meant and suite.outcomes.takes[index] >> number & 1:
            return str(rule["id"])
    return ""
