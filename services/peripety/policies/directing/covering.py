"""Scenarios for what others miss: each reaches something new, or kills a mutant that survived them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING

from peripety.policies.analysis.reaching import reach
from peripety.policies.analysis.verdicts import Differs, Reached, Unreachable
from peripety.policies.directing.choosing import chosen, gains
from peripety.policies.directing.crossing import crossed
from peripety.policies.directing.wording import about_aim, about_mutation
from peripety.policies.model import Covered, Expectation, ScenarioSource, TestScenario
from peripety.policies.mutating.mutating import run, score, told
from peripety.policies.mutating.operators import mutations
from peripety.policies.verifying.coverage import coverage, reaching
from peripety.policies.verifying.exploring import explore
from peripety.policies.verifying.outcomes import bits
from peripety.policies.verifying.suite import Suite
from peripety.policies.verifying.targets import aims

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.policies.analysis.verdicts import Reach
    from peripety.policies.mutating.mutating import Run
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Policy, ToolRequest

__all__ = ["cover"]


def cover(
    policy: Policy, scenarios: Sequence[TestScenario], max_scenarios: int = 0
) -> Iterator[TestScenario | Covered]:
    """Make scenarios for what some miss, without a model: they expect what the rules say.

    Args:
        policy: the policy.
        scenarios: the scenarios there are.
        max_scenarios: most scenarios to make; 0 for as many as it takes.

    Yields:
        The scenarios, those that add most first; at last, what all of them reach together.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
    """
    suite = Suite(policy, scenarios)
    wanted = aims(policy)
    runs = [*run(suite, [*mutations(policy)])]
    missed = [aim for aim, by in zip(wanted, reaching(suite, wanted), strict=True) if not by]
    explored = explore(policy, missed)
    survivors = [done for done in runs if not done.killers]
    requests = crossed(policy, [*_of_aims(policy, missed, explored), *_of_mutants(survivors)])
    candidates = Suite(policy, [*_directed(policy, [*requests])])
    names = {scenario.description for scenario in scenarios}
    added = [*_adding(candidates, survivors, missed, names)][: max_scenarios or None]
    yield from added

    everything = Suite(policy, [*scenarios, *added])
    covered = {aim.path for aim, by in zip(wanted, reaching(everything, wanted), strict=True) if by}
    unreachable = {aim.path for aim, how in zip(missed, explored, strict=True) if how == Unreachable()}
    killers = everything.failing(done.mutation.rules for done in runs)
    scored = (replace(done, killers=by) for done, by in zip(runs, killers, strict=True))
    yield Covered(
        coverage(wanted, covered, unreachable),
        score(told(everything.scenarios, done) for done in scored),
    )


def _of_mutants(survivors: Iterable[Run]) -> Iterator[ToolRequest]:
    return (done.verdict.witness for done in survivors if isinstance(done.verdict, Differs))


def _of_aims(policy: Policy, missed: Sequence[Aim], explored: Sequence[Reach]) -> Iterator[ToolRequest]:
    """Requests for aims; those that show most come first, as the first of equals is taken."""
    closest = reach(policy, [aim.closer for aim in missed if aim.closer])
    yield from (how.request for how in (*closest, *explored) if isinstance(how, Reached))


def _directed(policy: Policy, requests: Sequence[ToolRequest]) -> Iterator[TestScenario]:
    """Scenarios that expect what the rules say, without a description yet."""
    for request, decided in zip(requests, policy.decide_many(requests), strict=True):
        expected = Expectation(decided.decision.value)
        reason, rule_id = decided.reasons[-1], decided.rule_id
        yield TestScenario("", request, expected, reason, ScenarioSource.DIRECTED, rule_id)


def _adding(
    candidates: Suite, survivors: Sequence[Run], missed: Sequence[Aim], names: set[str]
) -> Iterator[TestScenario]:
    """As few candidates as kill and reach what all of them do, those that add most first.

    Each is described by the first thing that it adds, unlike any of the names.
    """
    policy = candidates.policy
    killed = candidates.failing(done.mutation.rules for done in survivors)
    adds = gains([*killed, *reaching(candidates, missed)], len(candidates.scenarios))
    known = 0
    for number in chosen(adds):
        thing = next(bits(adds[number] & ~known))
        known |= adds[number]
        if thing < len(survivors):
            description = about_mutation(policy, survivors[thing].mutation)
        else:
            description = about_aim(policy, missed[thing - len(survivors)])
        yield replace(candidates.scenarios[number], description=_unlike(names, description))


def _unlike(names: set[str], description: str) -> str:
    """A description that none has yet; it is one of them then."""
    numbered = (f"{description} ({number})" for number in count(2))
    name = next(name for name in chain([description], numbered) if name not in names)
    names.add(name)
    return name
