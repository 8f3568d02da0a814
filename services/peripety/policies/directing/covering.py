"""Scenarios for what others miss: each reaches something new, or kills a mutant that survived them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.policies.analysis.verdicts import Unreachable
from peripety.policies.directing.candidates import candidates, described
from peripety.policies.directing.choosing import chosen, gains
from peripety.policies.model import Covered, TestScenario
from peripety.policies.mutating.mutating import run, score, told
from peripety.policies.mutating.operators import mutations
from peripety.policies.verifying.coverage import coverage, reaching
from peripety.policies.verifying.exploring import explore
from peripety.policies.verifying.outcomes import bits
from peripety.policies.verifying.suite import Suite
from peripety.policies.verifying.targets import aims

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.policies.mutating.mutating import Run
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Policy

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
    found = Suite(policy, candidates(policy, survivors, missed, explored))
    names = {scenario.description for scenario in scenarios}
    added = [*_adding(found, survivors, missed, names)][: max_scenarios or None]
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


def _adding(
    found: Suite, survivors: Sequence[Run], missed: Sequence[Aim], names: set[str]
) -> Iterator[TestScenario]:
    """As few candidates as kill and reach what all of them do, each described by the first thing it adds."""
    things: list[Run | Aim] = [*survivors, *missed]
    killed = found.failing(done.mutation.rules for done in survivors)
    adds = gains([*killed, *reaching(found, missed)], len(found.scenarios))
    known = 0
    for number in chosen(adds):
        thing = things[next(bits(adds[number] & ~known))]
        known |= adds[number]
        yield replace(found.scenarios[number], description=described(found.policy, thing, names))
