"""Generation of scenarios for coverage gaps and surviving mutants."""

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
    """Generate scenarios for coverage gaps without a model; they expect the decision of the rules.

    Args:
        policy: the policy.
        scenarios: the existing scenarios.
        max_scenarios: maximum number of scenarios; 0 for no limit.

    Yields:
        The scenarios, those that add most first; at the end, the coverage of all scenarios together.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
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
    """Generate scenarios from scratch that reach everything reachable; as in `cover`.

    Raises:
        OutOfTimeError: the time limit is reached.
    """
    yield from _adding(subject, _missing(subject, Suite(subject.policy, ())), set())


@dataclass(frozen=True, slots=True)
class _Missing:
    """The gaps of a suite.

    Attributes:
        runs: the results of all mutants.
        aims: the coverage targets that it does not reach.
        explored: the result of the search for each of these.
    """

    runs: Sequence[Run]
    aims: Sequence[Aim]
    explored: Sequence[Reach]


def _missing(subject: Subject, suite: Suite) -> _Missing:
    runs = [*run(subject, suite, subject.mutations)]
    missed = [aim for aim, by in zip(subject.aims, reaching(suite, subject.aims), strict=True) if not by]
    return _Missing(runs, missed, subject.explored(missed))


def _adding(subject: Subject, missing: _Missing, names: set[str]) -> Iterator[TestScenario]:
    """Yield few candidates that kill and reach all that any does, described by the first thing they add."""
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
