"""Coverage and mutation score of a set of tests or scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Coverage", "Mutant", "MutantOutcome", "MutationScore"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of the targets of one kind.

    Attributes:
        kind: stable lower_snake_case name of the kind, such as `rule`.
        covered: number of targets that are reached.
        reachable: number of targets that can be reached.
        uncovered: JSON Pointers of reachable targets that are not reached.
        unreachable: JSON Pointers of targets that cannot be reached; they do not count.
    """

    kind: str
    covered: int
    reachable: int
    uncovered: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()


class MutantOutcome(Enum):
    """Outcome of running the tests against a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    """Proved to mean the same as the original; does not count."""
    INVALID = "invalid"
    """Could not be run; does not count."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """Small change of a document that its tests should detect.

    Attributes:
        mutant_id: unique within the document and the version of the operators.
        operator: stable lower_snake_case name of the operator, such as `swap_comparison`.
        path: JSON Pointer of the changed part.
        before: the part before, as JSON; None if the operator added it.
        after: the part after, as JSON; None if the operator removed it.
        outcome: the result of running the tests.
        killed_by: names of the tests that kill the mutant.
    """

    mutant_id: str
    operator: str
    path: str
    before: bytes | None
    after: bytes | None
    outcome: MutantOutcome
    killed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MutationScore:
    """Mutation score: the numbers of killed and surviving mutants.

    Attributes:
        killed: mutants that at least one test kills.
        survived: mutants that no test kills.
        equivalent: mutants with the meaning of the original.
        survivors: the surviving mutants.
    """

    killed: int
    survived: int
    equivalent: int
    survivors: tuple[Mutant, ...] = ()

    @property
    def score(self) -> float:
        """Killed mutants as a share of the killed and surviving ones; 0 without any."""
        counted = self.killed + self.survived
        return self.killed / counted if counted else 0.0
