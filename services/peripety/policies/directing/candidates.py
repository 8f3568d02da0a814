"""Candidate scenarios that kill mutants or reach coverage targets, and crossovers of them."""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING

from peripety.policies.analysis.reaching import reach
from peripety.policies.analysis.verdicts import Differs, Reached
from peripety.policies.directing.crossing import crossed
from peripety.policies.directing.wording import about_aim, about_mutation
from peripety.policies.model import Expectation, ScenarioSource, TestScenario
from peripety.policies.mutating.mutating import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.policies.analysis.verdicts import Reach
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Policy, ToolRequest

__all__ = ["candidates", "described", "unlike"]


def candidates(
    policy: Policy, runs: Sequence[Run], missed: Sequence[Aim], explored: Sequence[Reach]
) -> list[TestScenario]:
    """Return scenarios without descriptions that expect the decision of the rules.

    Args:
        policy: the policy.
        runs: mutants to kill.
        missed: coverage targets to reach.
        explored: the result of the search for each target.
    """
    requests = [*crossed(policy, [*_of_aims(policy, missed, explored), *_of_mutants(runs)])]
    return [*_directed(policy, requests)]


def described(policy: Policy, thing: Run | Aim, names: set[str]) -> str:
    """Return a unique description of a scenario that kills a mutant or reaches a target."""
    about = about_mutation(policy, thing.mutation) if isinstance(thing, Run) else about_aim(policy, thing)
    return unlike(names, about)


def unlike(names: set[str], description: str) -> str:
    """Return a description that is not in a set of names, and add it to the set."""
    numbered = (f"{description} ({number})" for number in count(2))
    name = next(name for name in chain([description], numbered) if name not in names)
    names.add(name)
    return name


def _of_mutants(survivors: Iterable[Run]) -> Iterator[ToolRequest]:
    return (done.verdict.witness for done in survivors if isinstance(done.verdict, Differs))


def _of_aims(policy: Policy, missed: Sequence[Aim], explored: Sequence[Reach]) -> Iterator[ToolRequest]:
    """Yield requests for targets, the most significant ones first, because the first of equals is used."""
    closest = reach(policy, [aim.closer for aim in missed if aim.closer])
    yield from (how.request for how in (*closest, *explored) if isinstance(how, Reached))


def _directed(policy: Policy, requests: Sequence[ToolRequest]) -> Iterator[TestScenario]:
    """Yield scenarios without descriptions that expect the decision of the rules."""
    for request, decided in zip(requests, policy.decide_many(requests), strict=True):
        expected = Expectation(decided.decision.value)
        reason, rule_id = decided.reasons[-1], decided.rule_id
        yield TestScenario("", request, expected, reason, ScenarioSource.DIRECTED, rule_id)
