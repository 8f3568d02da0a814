"""Scenarios for what others miss: each reaches something new, or kills a mutant that survived them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.policies.analysis.verdicts import Unreachable
from peripety.policies.directing.candidates import candidates, described
from peripety.policies.directing.choosing import chosen, gains
from peripety.policies.model import Covered, TestScenario
from peripety.policies.mutating.mutating import run, score, told
from peripety.policies.mutating.subject import Subject
from peripety.policies.verifying.coverage import coverage, reaching
from peripety.policies.verifying.outcomes import bits
from peripety.policies.verifying.suite import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.policies.analysis.verdicts import Reach
    from peripety.policies.mutating.mutating import Run
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Policy

__all__ = ["cover", "directed"]


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
    subject = Subject(policy)
    missing = _missing(subject, Suite(policy, scenarios))
    names = {scenario.description for scenario in scenarios}
    added = [*_adding(subject, missing, names)][: max_scenarios or None]
    yield from added

    wanted, runs = subject.aims, missing.runs
    everything = Suite(policy, [*scenarios, *added])
    covered = {aim.path for aim, by in zip(wanted, reaching(everything, wanted), strict=True) if by}
    unreachable = {
        aim.path for aim, how in zip(missing.aims, missing.explored, strict=True) if how == Unreachable()
    }
    killers = everything.failing(done.mutation.rules for done in runs)
    scored = (replace(done, killers=by) for done, by in zip(runs, killers, strict=True))
    yield Covered(
        coverage(wanted, covered, unreachable),
        score(told(everything.scenarios, done) for done in scored),
    )


def directed(subject: Subject) -> Iterator[TestScenario]:
    """Scenarios that do all that can be done, made without any others; as `cover` makes them.

    Raises:
        OutOfTimeError: there was no time to find them.
    """
    yield from _adding(subject, _missing(subject, Suite(subject.policy, ())), set())


@dataclass(frozen=True, slots=True)
class _Missing:
    """What a suite misses.

    Attributes:
        runs: what became of all mutants.
        aims: the aims that it does not reach.
        explored: how each of these can be reached.
    """

    runs: Sequence[Run]
    aims: Sequence[Aim]
    explored: Sequence[Reach]


def _missing(subject: Subject, suite: Suite) -> _Missing:
    runs = [*run(subject, suite, subject.mutations)]
    missed = [aim for aim, by in zip(subject.aims, reaching(suite, subject.aims), strict=True) if not by]
    return _Missing(runs, missed, subject.explored(missed))


def _adding(subject: Subject, missing: _Missing, names: set[str]) -> Iterator[TestScenario]:
    """As few candidates as kill and reach what all of them do, each described by the first thing it adds."""
    missed = missing.aims
    survivors = [done for done in missing.runs if not done.killers]
    things: list[Run | Aim] = [*survivors, *missed]
    found = Suite(subject.policy, candidates(subject.policy, survivors, missed, missing.explored))
    killed = found.failing(done.mutation.rules for done in survivors)
    adds = gains([*killed, *reaching(found, missed)], len(found.scenarios))
    known = 0
    for number in chosen(adds):
        thing = things[next(bits(adds[number] & ~known))]
        known |= adds[number]
        yield replace(found.scenarios[number], description=described(found.policy, thing, names))
