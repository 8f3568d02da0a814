"""The tests of a run together: what each adds to those before it, and what all of them leave out."""

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
    """Two tests of the same input that cannot both be right.

    Attributes:
        test_id: the later test.
        other_id: the earlier one.
    """

    test_id: str
    other_id: str


@dataclass(frozen=True, slots=True)
class _Added:
    """A test of the suite, and what it gives, as text."""

    test: TestCase
    examined: Examined
    given: str

    @property
    def holds(self) -> bool:
        """Whether it passes and looks at something."""
        return bool(self.examined.kills or self.examined.covered)

    def is_like(self, other: _Added) -> bool:
        """Whether both kill the same mutants, and at least one, and cover the same targets."""
        mine, other_ones = self.examined, other.examined
        return bool(mine.kills) and (mine.kills, mine.covered) == (other_ones.kills, other_ones.covered)


class MeasuredSuite:
    """Tests on a subject, added in the order in which they were made; the same tests give the same suite.

    Args:
        subject: what they were run on.
        mutation: whether they were run on its mutants as well.
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
        """Add a test, which was examined.

        Returns:
            What it is worth beside those before it; a later test may contradict it: see `verdict`.
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
        """What a test is worth, with what was found of it since it was added.

        Raises:
            KeyError: there is no such test.
        """
        return self._verdicts[test_id]

    def repeated(self, test_id: str) -> tuple[str, DuplicateLevel] | None:
        """The id of the test that a test turned out to repeat when it ran, and how.

        Only tests that hold and add nothing repeat another: their inputs hardly differ, or they kill the same
        mutants and cover the same targets.

        Returns:
            None when it stays in the suite.
        """
        return self._repeated.get(test_id)

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        """The mutants that no test kills and that are not proved to mean the same as the subject.

        Each is compared with the subject once, when it is first asked for as a survivor; that can take long.
        """
        left = [one for one in self._mutants if one not in self._killed]
        new = [one for one in left if one not in self._compared]
        if new:
            self._equivalent |= self._subject.equivalent(new)
            self._compared.update(new)
        return tuple(self._mutants[one] for one in left if one not in self._equivalent)

    @property
    def uncovered(self) -> tuple[Target, ...]:
        """The targets that no test covers, and some test could."""
        return tuple(
            target
            for one, target in self._targets.items()
            if target.is_reachable and one not in self._covered
        )

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The pairs of tests that contradict each other, in the order in which they were found."""
        return tuple(self._contradictions)

    @property
    def vectors(self) -> tuple[frozenset[str], ...]:
        """For each test that holds and looks at something, the ids of what it kills and covers, in order."""
        return tuple(one.examined.kills | one.examined.covered for one in self._added.values() if one.holds)

    @property
    def quality(self) -> Quality:
        """How good the tests are; takes what `survivors` takes."""
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
        message = f"it has the same input as {other_id}, and both cannot be right."
        found = Finding("CONTRADICTION", "", message, Severity.WARNING)
        verdict = self._verdicts[test_id]
        self._verdicts[test_id] = replace(verdict, findings=(*verdict.findings, found))
