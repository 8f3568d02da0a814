"""Measured suite: the value that each test adds, and the gaps of all tests together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity
from peripety.quality import Coverage, MutationScore
from peripety.testgen.measuring.contradicting import contradict
from peripety.testgen.measuring.inputs import are_near, input_text
from peripety.testgen.model import DuplicateLevel, Quality, Verdict

if TYPE_CHECKING:
    from peripety.quality import Mutant
    from peripety.testgen.model import Examined, TestCase
    from peripety.testgen.subjects.subject import Subject, Target

__all__ = ["Contradiction", "MeasuredSuite"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two tests with the same input and contradictory expectations.

    Attributes:
        test_id: the later test.
        other_id: the earlier test.
    """

    test_id: str
    other_id: str


@dataclass(frozen=True, slots=True)
class _Added:
    """A test of the suite, with its input as canonical text."""

    test: TestCase
    examined: Examined
    given: str

    @property
    def holds(self) -> bool:
        """True if it passes and detects anything."""
        return bool(self.examined.kills or self.examined.covered)

    def is_like(self, other: _Added) -> bool:
        """Return True if both kill the same mutants, at least one, and cover the same targets."""
        mine, other_ones = self.examined, other.examined
        return bool(mine.kills) and (mine.kills, mine.covered) == (other_ones.kills, other_ones.covered)


class MeasuredSuite:
    """The tests of a subject, in the order in which they were written. The result is deterministic.

    Args:
        subject: the subject.
        mutation: True if tests were run on its mutants as well.
    """

    def __init__(self, subject: Subject, *, mutation: bool = True) -> None:
        self._subject = subject
        self._is_mutated = mutation
        self._targets = {target.target_id: target for target in subject.targets}
        self._mutants = {mutant.mutant_id: mutant for mutant in subject.mutants} if mutation else {}
        self._added: dict[str, _Added] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._by_input: dict[str, list[_Added]] = {}
        self._contradictions: list[Contradiction] = []
        self._repeated: dict[str, tuple[str, DuplicateLevel]] = {}
        self._killed: set[str] = set()
        self._covered: set[str] = set()
        self._compared: set[str] = set()
        self._equivalent: set[str] = set()

    def add(self, test: TestCase, examined: Examined) -> Verdict:
        """Add a test with its result.

        Returns:
            Its value in addition to earlier tests. A later test may contradict it; see `verdict`.
        """
        added = _Added(test, examined, input_text(self._subject, test))
        new_kills = tuple(one for one in self._mutants if one in examined.kills - self._killed)
        new_coverage = tuple(one for one in self._targets if one in examined.covered - self._covered)
        counts = bool(new_kills or new_coverage)
        self._verdicts[test.test_id] = Verdict(examined, counts, examined.findings, new_kills, new_coverage)
        if not counts and (repeated := self._repeats(added)):
            self._repeated[test.test_id] = repeated
        self._contradict(added)
        self._added[test.test_id] = added
        self._by_input.setdefault(added.given, []).append(added)
        self._killed.update(new_kills)
        self._covered.update(new_coverage)
        return self._verdicts[test.test_id]

    def verdict(self, test_id: str) -> Verdict:
        """Return the current verdict about a test.

        Raises:
            KeyError: the test does not exist.
        """
        return self._verdicts[test_id]

    def repeated(self, test_id: str) -> tuple[str, DuplicateLevel] | None:
        """Return the id of the test that a test turned out to duplicate, and the criterion.

        Only passing tests without additional value count as duplicates: their inputs are nearly equal, or
        they kill the same mutants and cover the same targets.

        Returns:
            None if the test remains in the suite.
        """
        return self._repeated.get(test_id)

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        """The mutants that no test kills and that are not proved equivalent to the subject.

        Each mutant is compared with the subject once, when it first survives; this can take long.
        """
        left = [one for one in self._mutants if one not in self._killed]
        new = [one for one in left if one not in self._compared]
        if new:
            self._equivalent |= self._subject.equivalent(new)
            self._compared.update(new)
        return tuple(self._mutants[one] for one in left if one not in self._equivalent)

    @property
    def uncovered(self) -> tuple[Target, ...]:
        """The reachable targets that no test covers."""
        return tuple(
            target
            for one, target in self._targets.items()
            if target.is_reachable and one not in self._covered
        )

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The pairs of contradictory tests, in the order in which they were found."""
        return tuple(self._contradictions)

    @property
    def vectors(self) -> tuple[frozenset[str], ...]:
        """The ids that each passing test kills and covers, in order."""
        return tuple(one.examined.kills | one.examined.covered for one in self._added.values() if one.holds)

    @property
    def quality(self) -> Quality:
        """The quality of the tests; as expensive as `survivors`."""
        counting = sum(verdict.counts for verdict in self._verdicts.values())
        return Quality(self._coverage(), self._mutation() if self._is_mutated else None, counting)

    def _mutation(self) -> MutationScore:
        survivors = self.survivors
        killed = len(self._killed)
        equivalent = len(self._mutants) - killed - len(survivors)
        return MutationScore(killed, len(survivors), equivalent, survivors)

    def _coverage(self) -> tuple[Coverage, ...]:
        by_kind: dict[str, list[Target]] = {}
        for target in self._targets.values():
            by_kind.setdefault(target.kind, []).append(target)
        return tuple(self._coverage_of(kind, targets) for kind, targets in by_kind.items())

    def _coverage_of(self, kind: str, targets: list[Target]) -> Coverage:
        left = [target for target in targets if target.target_id not in self._covered]
        uncovered = tuple(target.path for target in left if target.is_reachable)
        unreachable = tuple(target.path for target in left if not target.is_reachable)
        covered = len(targets) - len(left)
        return Coverage(kind, covered, covered + len(uncovered), uncovered, unreachable)

    def _repeats(self, added: _Added) -> tuple[str, DuplicateLevel] | None:
        if not added.holds:
            return None
        before = [one for name, one in self._added.items() if one.holds and name not in self._repeated]
        for one in before:
            if are_near(one.given, added.given):
                return one.test.test_id, DuplicateLevel.NEAR
        for one in before:
            if added.is_like(one):
                return one.test.test_id, DuplicateLevel.KILLS
        return None

    def _contradict(self, added: _Added) -> None:
        for other in self._by_input.get(added.given, ()):
            if contradict(added.test, added.examined, other.test, other.examined):
                one_id, other_id = added.test.test_id, other.test.test_id
                self._contradictions.append(Contradiction(one_id, other_id))
                self._find(one_id, other_id)
                self._find(other_id, one_id)

    def _find(self, test_id: str, other_id: str) -> None:
        message = f"contradicts {other_id}, which has the same input."
        found = Finding("CONTRADICTION", "", message, Severity.WARNING)
        verdict = self._verdicts[test_id]
        self._verdicts[test_id] = replace(verdict, findings=(*verdict.findings, found))
