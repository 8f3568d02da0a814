"""Verification of scenarios on the engine, with coverage and mutation score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.engine import Decision
from peripety.policy.analysis.equivalence import Unreachable
from peripety.policy.mutation.runner import (
    MutationContext,
    TimeLimitReachedError,
    iter_mutant_runs,
    mutation_score,
    to_report,
)
from peripety.policy.types import ScenarioResult, VerificationReport
from peripety.policy.verification.coverage import EvaluatedSuite, coverage_by_kind, reaching_scenarios

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.core.mutation_testing import Coverage, Mutant, MutationScore
    from peripety.engine import Policy
    from peripety.policy.analysis.equivalence import ReachResult
    from peripety.policy.types import TestScenario


def verify(
    policy: Policy,
    scenarios: Sequence[TestScenario],
    *,
    mutation: bool = False,
) -> VerificationReport:
    """Run scenarios on the rules of a policy, and report results, coverage and mutation score.

    Only passing scenarios count for coverage and kill mutants.

    Args:
        policy: the policy.
        scenarios: the scenarios.
        mutation: True to measure the mutation score.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
    """
    return measure(MutationContext(policy), scenarios, mutation=mutation).report


@dataclass(frozen=True, slots=True)
class MeasuredVerification:
    """A verification report, possibly limited by time.

    Attributes:
        report: the report.
        skipped: the parts that the time limit skipped, each in a few words.
    """

    report: VerificationReport
    skipped: tuple[str, ...]


def measure(
    context: MutationContext,
    scenarios: Sequence[TestScenario],
    *,
    mutation: bool,
) -> MeasuredVerification:
    """Verify as in `verify`, with cached facts about the policy and a time limit.

    After the time limit, unreached targets count as reachable, and untested mutants do not count. The results
    of scenarios are always complete.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
    """
    suite = EvaluatedSuite(context.policy, scenarios)
    left: list[str] = []
    covered = tuple(_measure_coverage(context, suite, left))
    scored = _measure_mutation(context, suite, left) if mutation else None
    return MeasuredVerification(
        VerificationReport(tuple(_scenario_results(suite)), covered, scored),
        tuple(left),
    )


def _measure_mutation(context: MutationContext, suite: EvaluatedSuite, left: list[str]) -> MutationScore:
    done: list[Mutant] = []
    try:
        for found in iter_mutant_runs(context, suite, context.mutations):
            done.append(to_report(suite.scenarios, found))  # noqa: PERF401 - partial results count
    except TimeLimitReachedError:
        left.append(f"{len(context.mutations) - len(done)} of {len(context.mutations)} mutants")
    return mutation_score(done)


def _measure_coverage(
    context: MutationContext,
    suite: EvaluatedSuite,
    left: list[str],
) -> tuple[Coverage, ...]:
    reached = reaching_scenarios(suite, context.targets)
    covered = {aim.path for aim, by in zip(context.targets, reached, strict=True) if by}
    missed = [aim for aim in context.targets if aim.path not in covered]
    explored: Sequence[ReachResult] = ()
    try:
        explored = context.find_reaching(missed)
    except TimeLimitReachedError:
        left.append(f"the reachability of {len(missed)} uncovered targets")
    unreachable = {
        aim.path for aim, how in zip(missed, explored, strict=False) if isinstance(how, Unreachable)
    }
    return coverage_by_kind(context.targets, covered, unreachable)


def _scenario_results(suite: EvaluatedSuite) -> Iterator[ScenarioResult]:
    policy = suite.policy
    decided = policy.decide_many(suite.requests)
    deciding = policy.find_deciding_rules(suite.requests)
    places = {rule["id"]: index for index, rule in enumerate(policy.rules)}
    for number, scenario in enumerate(suite.scenarios):
        masked = _masked_rule(suite, number, deciding[number], places)
        yield ScenarioResult(scenario, decided[number], masked)


def _masked_rule(suite: EvaluatedSuite, number: int, deciding: int, places: Mapping[str, int]) -> str:
    """Return the tested rule of a scenario, or one that would meet it, if an earlier rule decides."""
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
    takes = suite.outcomes.applying
    masked = next((index for index in meant if index > deciding and takes[index] >> number & 1), None)
    return "" if masked is None else str(suite.policy.rules[masked]["id"])
