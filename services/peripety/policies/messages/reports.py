"""Verification reports, coverage and mutation scores to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.common.v1 import quality_pb2 as quality
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.client.items import parcels
from peripety.policies.messages import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.policies.model import Covered, Mutants, ScenarioResult, VerificationReport
    from peripety.quality import Coverage, Mutant, MutationScore

__all__ = ["coverage", "covered", "mutants", "mutation_score", "results", "verification"]

_MOST = 100
"""Limit of listed examples."""


def verification(report: VerificationReport) -> pb.VerificationReport:
    """Convert a verification report."""
    failed = len(report.failures)
    return pb.VerificationReport(
        passed=len(report.results) - failed,
        failed=failed,
        results=results(report.results),
        coverage=coverage(report.coverage),
        mutation=None if report.mutation is None else mutation_score(report.mutation),
    )


def results(found: Iterable[ScenarioResult]) -> list[pb.ScenarioResult]:
    """Convert results of scenarios."""
    return [
        pb.ScenarioResult(
            scenario_id=parts.scenario_id(result.scenario),
            passed=result.passed,
            actual=parts.decision_result(result.actual),
            masked_rule_id=result.masked_rule_id,
        )
        for result in found
    ]


def coverage(kinds: Iterable[Coverage]) -> list[quality.Coverage]:
    """Convert coverage by kind."""
    return [
        quality.Coverage(
            kind=one.kind,
            covered=one.covered,
            reachable=one.reachable,
            uncovered=one.uncovered[:_MOST],
            unreachable=one.unreachable[:_MOST],
        )
        for one in kinds
    ]


def mutation_score(score: MutationScore) -> quality.MutationScore:
    """Convert a mutation score."""
    return quality.MutationScore(
        killed=score.killed,
        survived=score.survived,
        equivalent=score.equivalent,
        score=score.score,
        survivors=map(_mutant, score.survivors[:_MOST]),
    )


def mutants(done: Mutants) -> Iterator[pb.RunMutationTestsResponse.Mutants]:
    """Yield mutants in as few messages as the size limit allows."""
    for some in parcels(map(_mutant, done.mutants)):
        yield pb.RunMutationTestsResponse.Mutants(mutants=some, total=done.total)


def covered(found: Covered) -> pb.GenerateCoverageScenariosResponse.Covered:
    """Convert the final result of coverage generation."""
    return pb.GenerateCoverageScenariosResponse.Covered(
        coverage=coverage(found.coverage), mutation=mutation_score(found.mutation)
    )


def _mutant(mutant: Mutant) -> quality.Mutant:
    return quality.Mutant(
        mutant_id=mutant.mutant_id,
        operator=mutant.operator,
        path=mutant.path,
        before=mutant.before,
        after=mutant.after,
        outcome=quality.MutantOutcome.Value(f"MUTANT_OUTCOME_{mutant.outcome.name}"),
        killed_by=mutant.killed_by[:_MOST],
    )
