"""Mutation test runner: mutants of a policy, their outcomes, and the mutation score."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE
from peripety.policies.analysis.verdicts import Equivalent
from peripety.policies.model import Mutants
from peripety.policies.mutating.operators import mutations
from peripety.policies.mutating.subject import Subject
from peripety.policies.verifying.outcomes import bits
from peripety.policies.verifying.suite import Suite
from peripety.quality import Mutant, MutantOutcome, MutationScore
from peripety.sim import canonical
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.policies.analysis.verdicts import Verdict
    from peripety.policies.model import TestScenario
    from peripety.policies.mutating.changes import Mutation
    from peripety.sim import Policy

__all__ = ["Run", "mutate", "run", "score", "told"]

_BLOCK = 1000
_MOST_NAMES = 100


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a mutant.

    Attributes:
        mutation: the mutant.
        killers: a bit for each scenario that kills it.
        verdict: the comparison with the policy; None for a killed mutant, which is not compared.
    """

    mutation: Mutation
    killers: int
    verdict: Verdict | None

    @property
    def outcome(self) -> MutantOutcome:
        """Killed, survived or equivalent; an undecided mutant counts as survived."""
        if self.killers:
            return MutantOutcome.KILLED
        return MutantOutcome.EQUIVALENT if isinstance(self.verdict, Equivalent) else MutantOutcome.SURVIVED


def mutate(
    policy: Policy, scenarios: Sequence[TestScenario], operators: Sequence[str] = ()
) -> Iterator[Mutants]:
    """Yield all mutants of a policy in blocks, with the scenarios that kill them.

    A scenario kills a mutant if it passes on the policy and fails on the mutant.

    Args:
        policy: the policy. Its invariants are not mutated.
        scenarios: the scenarios.
        operators: names of the operators to use; empty for all.

    Raises:
        InvalidArgumentError: an operator is unknown; or `REQUEST_INVALID`, a request is invalid.
    """
    made = [*mutations(policy, operators)]
    return _blocks(Subject(policy), Suite(policy, scenarios), made)


def _blocks(subject: Subject, suite: Suite, made: Sequence[Mutation]) -> Iterator[Mutants]:
    runs = run(subject, suite, made)
    while block := [*islice(runs, _BLOCK)]:
        yield Mutants(tuple(told(suite.scenarios, done) for done in block), len(made))


def run(subject: Subject, suite: Suite, made: Sequence[Mutation]) -> Iterator[Run]:
    """Run scenarios on mutants, and compare surviving mutants with the policy.

    Raises:
        OutOfTimeError: the time limit is reached.
    """
    remaining = iter(made)
    while block := [*islice(remaining, _BLOCK)]:
        subject.go_on()
        killers = [*suite.failing([mutation.rules for mutation in block])]
        survivors = [mutation for mutation, by in zip(block, killers, strict=True) if not by]
        verdicts = iter(subject.verdicts(survivors))
        for mutation, by in zip(block, killers, strict=True):
            yield Run(mutation, by, None if by else next(verdicts))


def score(mutants: Iterable[Mutant]) -> MutationScore:
    """Return the mutation score of some mutants."""
    counts = dict.fromkeys(MutantOutcome, 0)
    survivors = []
    for mutant in mutants:
        counts[mutant.outcome] += 1
        if mutant.outcome is MutantOutcome.SURVIVED:
            survivors.append(mutant)
    return MutationScore(
        counts[MutantOutcome.KILLED],
        counts[MutantOutcome.SURVIVED],
        counts[MutantOutcome.EQUIVALENT],
        tuple(survivors),
    )


def told(scenarios: Sequence[TestScenario], done: Run) -> Mutant:
    """Convert the result of a mutant to the report form.

    Args:
        scenarios: the scenarios that `killers` refers to.
        done: the result.
    """
    mutation = done.mutation
    names = (scenarios[number].description for number in bits(done.killers))
    return Mutant(
        mutation.mutant_id,
        mutation.operator,
        pointer(mutation.place),
        _json(mutation.before),
        _json(mutation.after),
        done.outcome,
        tuple(islice(names, _MOST_NAMES)),
    )


def _json(part: Any) -> bytes | None:
    return None if part is GONE else canonical(part)
