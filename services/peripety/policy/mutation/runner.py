"""Mutation test runner: mutants of a policy, their outcomes, and the mutation score.

`MutationContext` has the facts that are computed once for any number of suites.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.core.mutation_testing import REMOVED, Mutant, MutantOutcome, MutationScore
from peripety.engine import canonicalize
from peripety.engine.schema_validation import format_pointer
from peripety.policy.analysis.equivalence import Equivalent, Undecided, compare_rule_windows
from peripety.policy.mutation.operators import iter_mutations, mutation_window
from peripety.policy.types import MutantBlock
from peripety.policy.verification.coverage import (
    EvaluatedSuite,
    coverage_targets,
    find_reaching_requests,
    iter_bits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from peripety.engine import Policy
    from peripety.policy.analysis.equivalence import EquivalenceVerdict, ReachResult
    from peripety.policy.mutation.operators import PolicyMutation
    from peripety.policy.types import TestScenario
    from peripety.policy.verification.coverage import CoverageTarget


_COMPARED_PER_BLOCK = 1000


class TimeLimitReachedError(Exception):
    """The time limit of the measurement is reached."""


class MutationContext:
    """A policy to measure, with cached mutants, coverage targets and verdicts.

    Args:
        policy: the policy.
        is_late: returns True once the time limit is reached; called between steps.

    Attributes:
        policy: the policy.
    """

    def __init__(self, policy: Policy, is_late: Callable[[], bool] = lambda: False) -> None:
        self.policy = policy
        self._is_late = is_late
        self._verdict_cache: dict[str, EquivalenceVerdict] = {}
        self._reach_cache: dict[str, ReachResult] = {}

    @cached_property
    def mutations(self) -> tuple[PolicyMutation, ...]:
        """All mutants of the policy."""
        return tuple(iter_mutations(self.policy))

    @cached_property
    def targets(self) -> tuple[CoverageTarget, ...]:
        """All coverage targets of the policy."""
        return coverage_targets(self.policy)

    def check_time(self) -> None:
        """Return if there is time left.

        Raises:
            TimeLimitReachedError: the time limit is reached.
        """
        if self._is_late():
            raise TimeLimitReachedError

    def verdicts(self, made: Sequence[PolicyMutation]) -> list[EquivalenceVerdict]:
        """Return the comparison of each mutant with the policy.

        Raises:
            TimeLimitReachedError: the time limit is reached.
        """
        # A verdict that was undecided among many may be decided among few.
        new = iter(
            [one for one in made if isinstance(self._verdict_cache.get(one.mutant_id), Undecided | None)],
        )
        rules = self.policy.rules
        while block := [*islice(new, _COMPARED_PER_BLOCK)]:
            self.check_time()
            found = compare_rule_windows(
                self.policy,
                [mutation_window(rules, mutation) for mutation in block],
            )
            self._verdict_cache |= zip((mutation.mutant_id for mutation in block), found, strict=True)
        return [self._verdict_cache[mutation.mutant_id] for mutation in made]

    def find_reaching(self, targets: Sequence[CoverageTarget]) -> list[ReachResult]:
        """Return the result of the search for each coverage target.

        Raises:
            TimeLimitReachedError: the time limit is reached.
        """
        new = [aim for aim in targets if isinstance(self._reach_cache.get(aim.path), Undecided | None)]
        if new:
            self.check_time()
            self._reach_cache |= zip(
                (aim.path for aim in new),
                find_reaching_requests(self.policy, new),
                strict=True,
            )
        return [self._reach_cache[aim.path] for aim in targets]


_MUTANTS_PER_BLOCK = 1000
_MAX_KILLER_NAMES = 100


@dataclass(frozen=True, slots=True)
class MutantRun:
    """The result of a mutant.

    Attributes:
        mutation: the mutant.
        killers: a bit for each scenario that kills it.
        verdict: the comparison with the policy; None for a killed mutant, which is not compared.
    """

    mutation: PolicyMutation
    killers: int
    verdict: EquivalenceVerdict | None

    @property
    def outcome(self) -> MutantOutcome:
        """Killed, survived or equivalent; an undecided mutant counts as survived."""
        if self.killers:
            return MutantOutcome.KILLED
        return MutantOutcome.EQUIVALENT if isinstance(self.verdict, Equivalent) else MutantOutcome.SURVIVED


def run_mutants(
    policy: Policy,
    scenarios: Sequence[TestScenario],
    operators: Sequence[str] = (),
) -> Iterator[MutantBlock]:
    """Yield all mutants of a policy in blocks, with the scenarios that kill them.

    A scenario kills a mutant if it passes on the policy and fails on the mutant.

    Args:
        policy: the policy. Its invariants are not mutated.
        scenarios: the scenarios.
        operators: names of the operators to use; empty for all.

    Raises:
        InvalidArgumentError: an operator is unknown; or `REQUEST_INVALID`, a request is invalid.
    """
    made = [*iter_mutations(policy, operators)]
    return _iter_blocks(MutationContext(policy), EvaluatedSuite(policy, scenarios), made)


def _iter_blocks(
    context: MutationContext,
    suite: EvaluatedSuite,
    made: Sequence[PolicyMutation],
) -> Iterator[MutantBlock]:
    runs = iter_mutant_runs(context, suite, made)
    while block := [*islice(runs, _MUTANTS_PER_BLOCK)]:
        yield MutantBlock(tuple(to_report(suite.scenarios, done) for done in block), len(made))


def iter_mutant_runs(
    context: MutationContext,
    suite: EvaluatedSuite,
    mutations: Sequence[PolicyMutation],
) -> Iterator[MutantRun]:
    """Run scenarios on mutants, and compare surviving mutants with the policy.

    Raises:
        TimeLimitReachedError: the time limit is reached.
    """
    remaining = iter(mutations)
    while block := [*islice(remaining, _MUTANTS_PER_BLOCK)]:
        context.check_time()
        killers = [*suite.failing_by_change([mutation.rules for mutation in block])]
        survivors = [mutation for mutation, by in zip(block, killers, strict=True) if not by]
        verdicts = iter(context.verdicts(survivors))
        for mutation, by in zip(block, killers, strict=True):
            yield MutantRun(mutation, by, None if by else next(verdicts))


def mutation_score(mutants: Iterable[Mutant]) -> MutationScore:
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


def to_report(scenarios: Sequence[TestScenario], run: MutantRun) -> Mutant:
    """Convert the result of a mutant to the report form.

    Args:
        scenarios: the scenarios that `killers` refers to.
        run: the result.
    """
    mutation = run.mutation
    names = (scenarios[number].description for number in iter_bits(run.killers))
    return Mutant(
        mutation.mutant_id,
        mutation.operator,
        format_pointer(mutation.place),
        _part_to_json(mutation.before),
        _part_to_json(mutation.after),
        run.outcome,
        tuple(islice(names, _MAX_KILLER_NAMES)),
    )


def _part_to_json(part: Any) -> bytes | None:
    return None if part is REMOVED else canonicalize(part)
