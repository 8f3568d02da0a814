"""How well a set of tests or scenarios checks what it is about, measured by running it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Coverage", "Mutant", "MutantOutcome", "MutationScore"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many targets of one kind are reached.

    Attributes:
        kind: stable lower_snake_case name of the kind, such as `rule`.
        covered: targets that are reached.
        reachable: targets that can be reached at all.
        uncovered: JSON Pointers of reachable targets that are not reached.
        unreachable: JSON Pointers of targets that nothing can reach; they do not count.
    """

    kind: str
    covered: int
    reachable: int
    uncovered: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()


class MutantOutcome(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    """It was proved to mean the same as the original, and does not count."""
    INVALID = "invalid"
    """It could not be run, and does not count."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A small change of a document that its tests should notice.

    Attributes:
        mutant_id: names it within the document and the version of the operators.
        operator: stable lower_snake_case name of the operator, such as `swap_comparison`.
        path: JSON Pointer of the changed part.
        before: the part before, as JSON; None when the operator added it.
        after: the part after, as JSON; None when the operator removed it.
        outcome: what became of it.
        killed_by: names of the tests that kill it.
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
    """How many mutants the tests kill.

    Attributes:
        killed: mutants that a test kills.
        survived: mutants that no test kills.
        equivalent: mutants that mean the same as the original.
        survivors: those that survived.
    """

    killed: int
    survived: int
    equivalent: int
    survivors: tuple[Mutant, ...] = ()

    @property
    def score(self) -> float:
        """Of those that count, the share that is killed; 0 when there are none."""
        counted = self.killed + self.survived
        return self.killed / counted if counted else 0.0
