"""Scenarios on the engine: what the rules say to each, and what that shows of rules and scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.policies.analysis.verdicts import Unreachable
from peripety.policies.model import ScenarioResult, VerificationReport
from peripety.policies.mutating.mutating import run, score, told
from peripety.policies.mutating.subject import OutOfTimeError, Subject
from peripety.policies.verifying.coverage import coverage, reaching
from peripety.policies.verifying.suite import Suite
from peripety.sim import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.policies.analysis.verdicts import Reach
    from peripety.policies.model import TestScenario
    from peripety.quality import Coverage, Mutant, MutationScore
    from peripety.sim import Policy

__all__ = ["Measured", "measured", "verify"]


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
    return measured(Subject(policy), scenarios, mutation=mutation).report


@dataclass(frozen=True, slots=True)
class Measured:
    """How scenarios and rules fit together, as far as there was time to find out.

    Attributes:
        report: what was found out.
        left: what was not, each in a few words.
    """

    report: VerificationReport
    left: tuple[str, ...]


def measured(subject: Subject, scenarios: Sequence[TestScenario], *, mutation: bool) -> Measured:
    """As `verify`, with what is known of the policy. How scenarios fare is told whatever time there is.

    Where time is short, aims that no scenario reaches count as reachable, and mutants that were not tried do
    not count.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
    """
    suite = Suite(subject.policy, scenarios)
    left: list[str] = []
    covered = tuple(_coverage(subject, suite, left))
    scored = _score(subject, suite, left) if mutation else None
    return Measured(VerificationReport(tuple(_results(suite)), covered, scored), tuple(left))


def _score(subject: Subject, suite: Suite, left: list[str]) -> MutationScore:
    done: list[Mutant] = []
    try:
        for found in run(subject, suite, subject.mutations):
            done.append(told(suite.scenarios, found))  # noqa: PERF401 - what came before the end of time counts
    except OutOfTimeError:
        left.append(f"{len(subject.mutations) - len(done)} of {len(subject.mutations)} mutants")
    return score(done)


def _coverage(subject: Subject, suite: Suite, left: list[str]) -> tuple[Coverage, ...]:
    reached = reaching(suite, subject.aims)
    covered = {aim.path for aim, by in zip(subject.aims, reached, strict=True) if by}
    missed = [aim for aim in subject.aims if aim.path not in covered]
    explored: Sequence[Reach] = ()
    try:
        explored = subject.explored(missed)
    except OutOfTimeError:
        left.append(f"whether {len(missed)} uncovered targets can be reached")
    unreachable = {
        aim.path for aim, how in zip(missed, explored, strict=False) if isinstance(how, Unreachable)
    }
    return coverage(subject.aims, covered, unreachable)


def _results(suite: Suite) -> Iterator[ScenarioResult]:
    policy = suite.policy
    decided = policy.decide_many(suite.requests)
    deciding = policy.deciding(suite.requests)
    places = {rule["id"]: index for index, rule in enumerate(policy.rules)}
    for number, scenario in enumerate(suite.scenarios):
        masked = _masked(suite, number, deciding[number], places)
        yield ScenarioResult(scenario, decided[number], masked)


def _masked(suite: Suite, number: int, deciding: int, places: Mapping[str, int]) -> str:
    """The rule that a scenario is meant to test, or that would meet it, when another decides before it."""
    if deciding < 0:
        return ""
    scenario = suite.scenarios[number]
    if scenario.rule_id:
        meant = [places.get(scenario.rule_id, -1)]
    elif suite.passed >> number & 1:
        meant = []
    else:
        meant = [
            index
            for index, rule in enumerate(suite.policy.rules)
            if scenario.expected_decision.is_met_by(Decision(rule["then"]))
        ]
    takes = suite.outcomes.takes
    masked = next((index for index in meant if index > deciding and takes[index] >> number & 1), None)
    return "" if masked is None else str(suite.policy.rules[masked]["id"])
