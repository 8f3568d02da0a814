"""Measured suite: the value that each test adds, and the gaps of all tests together.

`evaluate_test` runs a single test, independent of other tests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.core.mutation_testing import Coverage, MutationScore
from peripety.errors import Finding, Severity
from peripety.testgen.evaluation.duplicates import contradict, input_text
from peripety.testgen.types import CaseVerdict, EvaluatedTest, SuiteQuality, TestStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.testgen.subjects.subject import RunResult, Subject, SubjectTarget
    from peripety.testgen.types import TestCase


DEFAULT_REPETITIONS = 5
"""Default number of runs of a test."""

_ENOUGH_KILLS = 3
_ENOUGH_SURVIVORS = 20
"""Number of survivors in covered places from which an author has enough to write tests for."""

_FURTHER_MUTANTS = 60
"""Number of mutants that are added at a time."""


def evaluate_test(
    subject: Subject,
    test: TestCase,
    repetitions: int = DEFAULT_REPETITIONS,
    *,
    mutants: Collection[str] | None = None,
) -> EvaluatedTest:
    """Run a test several times, check its soundness, and find the mutants that it kills.

    The call blocks for all its runs, so it must not run on the event loop.

    Args:
        subject: the subject.
        test: the test.
        repetitions: the number of runs, at least one; a test that is not executable runs once.
        mutants: the ids of the mutants to run it on; None for all.
    """
    problems = _body_problems(subject, test)
    if problems:
        return EvaluatedTest(TestStatus.NOT_EXECUTABLE, 0, findings=problems)
    ran = _run_repeatedly(subject, test, repetitions)
    first, status = ran[0], _combined_status(ran)
    if status is TestStatus.NOT_EXECUTABLE:
        return EvaluatedTest(status, len(ran), first.observed, first.findings)
    unsound = tuple(subject.soundness(test))
    findings = (*_result_findings(ran, status), *unsound)
    if status is not TestStatus.PASSED or unsound:
        return EvaluatedTest(status, len(ran), first.observed, findings)
    among = [one.mutant_id for one in subject.mutants] if mutants is None else mutants
    kills = subject.kills(test, among) if among else frozenset[str]()
    return EvaluatedTest(status, len(ran), first.observed, findings, first.covered, kills)


def _body_problems(subject: Subject, test: TestCase) -> tuple[Finding, ...]:
    if test.body is None:
        return (Finding("BODY_MISSING", "/body", "the test is only described in words; add a body."),)
    return tuple(subject.problems(test.body))


def _run_repeatedly(subject: Subject, test: TestCase, repetitions: int) -> list[RunResult]:
    ran = [subject.run(test)]
    if ran[0].status is not TestStatus.NOT_EXECUTABLE:
        ran += (subject.run(test) for _ in range(repetitions - 1))
    return ran


def _combined_status(results: Sequence[RunResult]) -> TestStatus:
    first = results[0]
    is_same = all((one.status, one.trace) == (first.status, first.trace) for one in results)
    return first.status if is_same else TestStatus.UNSTABLE


def _result_findings(results: Sequence[RunResult], status: TestStatus) -> tuple[Finding, ...]:
    if status is TestStatus.PASSED:
        return results[0].findings
    if status is TestStatus.UNSTABLE:
        passed = sum(one.status is TestStatus.PASSED for one in results)
        message = f"of {len(results)} runs {passed} passed, and their results differ."
        return (Finding("UNSTABLE", "", message),)
    said = results[0].findings
    return said or (Finding("EXPECTATION_NOT_MET", "", f"unexpected result: {results[0].observed[:200]}"),)


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
class _SuiteTest:
    """A test of the suite, with its input as canonical text."""

    test: TestCase
    examined: EvaluatedTest
    input_key: str

    @property
    def detects_anything(self) -> bool:
        """True if it passes and detects anything."""
        return bool(self.examined.kills or self.examined.covered)


class _FurtherMutants:
    """Mutants beyond the first ones, while tests are run on them.

    Args:
        mutants: the mutants.

    Attributes:
        mutants: the mutants.
        left: the ids of those that no test kills so far.
        kills: the ids that each test kills, in the order in which the tests were run.
    """

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self.mutants = mutants
        self.left = [one.mutant_id for one in mutants]
        self.kills: dict[str, frozenset[str]] = {}


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
        self._added: dict[str, _SuiteTest] = {}
        self._verdicts: dict[str, CaseVerdict] = {}
        self._by_input: dict[str, list[_SuiteTest]] = {}
        self._contradictions: list[Contradiction] = []
        self._killed: set[str] = set()
        self._kill_counts: Counter[str] = Counter()
        self._covered: set[str] = set()
        self._compared: set[str] = set()
        self._equivalent: set[str] = set()
        self._further: _FurtherMutants | None = None

    def add(self, test: TestCase, examined: EvaluatedTest) -> CaseVerdict:
        """Add a test with its result.

        Returns:
            Its value in addition to earlier tests. A later test may contradict it; see `verdict`.
        """
        added = _SuiteTest(test, examined, input_text(self._subject, test))
        new_kills = tuple(one for one in self._mutants if one in examined.kills - self._killed)
        new_coverage = tuple(one for one in self._targets if one in examined.covered - self._covered)
        counts = bool(new_kills or new_coverage)
        self._verdicts[test.test_id] = CaseVerdict(
            examined,
            counts,
            examined.findings,
            new_kills,
            new_coverage,
        )
        self._add_contradictions(added)
        self._added[test.test_id] = added
        self._by_input.setdefault(added.input_key, []).append(added)
        self._killed.update(new_kills)
        self._kill_counts.update(examined.kills)
        self._covered.update(new_coverage)
        return self._verdicts[test.test_id]

    def verdict(self, test_id: str) -> CaseVerdict:
        """Return the current verdict about a test.

        Raises:
            KeyError: the test does not exist.
        """
        return self._verdicts[test_id]

    @property
    def unsettled_mutants(self) -> list[str]:
        """The mutants on which further tests are worth running.

        A mutant that a few tests kill is settled: another one does not change the score, and the expected
        gain depends on those that are killed once or twice.
        """
        return [one for one in self._mutants if self._kill_counts[one] < _ENOUGH_KILLS]

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
    def reached_survivors(self) -> tuple[Mutant, ...]:
        """The survivors without those in places that no test covers: a test has to cover the place first."""
        missing = {target.path for one, target in self._targets.items() if one not in self._covered}
        return tuple(mutant for mutant in self.survivors if mutant.target not in missing)

    def widen(self, has_time: Callable[[], bool], *, is_idle: bool = False) -> Sequence[str]:
        """Measure further mutants while few survive at covered places; return the ids of tests killing them.

        Tests that kill the most mutants are run first.

        Args:
            has_time: False after the time limit. The next call continues with the same mutants.
            is_idle: True if the last tests reached nothing new: then survivors may be too hard to kill, and
                further mutants are measured once, however many survive.
        """
        changed: dict[str, None] = {}
        while self._is_mutated and (is_idle or len(self.reached_survivors) < _ENOUGH_SURVIVORS):
            if self._further is None:
                found = self._subject.further_mutants(len(self._mutants), _FURTHER_MUTANTS)
                self._further = _FurtherMutants(found)
            further = self._further
            for test_id in sorted(self._added, key=lambda one: -len(self._added[one].examined.kills)):
                if further.left and test_id not in further.kills:
                    if not has_time():
                        return [*changed]
                    self._run_further(test_id, further)
            self._further = None
            if not further.mutants:
                break
            is_idle = False
            self._mutants |= {one.mutant_id: one for one in further.mutants}
            for test_id, killed in further.kills.items():
                if killed:
                    self._add_kills(test_id, killed)
                    changed[test_id] = None
        return [*changed]

    def _run_further(self, test_id: str, further: _FurtherMutants) -> None:
        added, killed = self._added[test_id], frozenset[str]()
        if added.examined.status is TestStatus.PASSED and added.detects_anything:
            killed = self._subject.kills(added.test, further.left)
        further.kills[test_id] = killed
        further.left = [one for one in further.left if one not in killed]

    def know(self, mutant_ids: Collection[str]) -> None:
        """Add the further mutants of an earlier measurement, before any test is added."""
        unknown = {*mutant_ids}.difference(self._mutants) if self._is_mutated else frozenset[str]()
        while unknown and (further := self._subject.further_mutants(len(self._mutants), _FURTHER_MUTANTS)):
            self._mutants |= {one.mutant_id: one for one in further}
            unknown = unknown.difference(self._mutants)

    def _add_kills(self, test_id: str, killed: frozenset[str]) -> None:
        added, verdict = self._added[test_id], self._verdicts[test_id]
        examined = replace(added.examined, kills=added.examined.kills | killed)
        new_kills = (*verdict.new_kills, *(one for one in self._mutants if one in killed))
        self._added[test_id] = replace(added, examined=examined)
        self._verdicts[test_id] = replace(verdict, examined=examined, counts=True, new_kills=new_kills)
        self._killed |= killed
        self._kill_counts.update(killed)

    @property
    def uncovered(self) -> tuple[SubjectTarget, ...]:
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
        return tuple(
            one.examined.kills | one.examined.covered for one in self._added.values() if one.detects_anything
        )

    @property
    def quality(self) -> SuiteQuality:
        """The quality of the tests; as expensive as `survivors`."""
        counting = sum(verdict.counts for verdict in self._verdicts.values())
        return SuiteQuality(
            self._coverage(),
            self._mutation_score() if self._is_mutated else None,
            counting,
            dict(self._subject.unmeasured_lines),
            self._subject.changed_since,
            self._subject.unmutated,
        )

    def _mutation_score(self) -> MutationScore:
        survivors = self.survivors
        killed = len(self._killed)
        equivalent = len(self._mutants) - killed - len(survivors)
        return MutationScore(killed, len(survivors), equivalent, survivors)

    def _coverage(self) -> tuple[Coverage, ...]:
        by_kind: dict[str, list[SubjectTarget]] = {}
        for target in self._targets.values():
            by_kind.setdefault(target.kind, []).append(target)
        return tuple(self._coverage_of(kind, targets) for kind, targets in by_kind.items())

    def _coverage_of(self, kind: str, targets: list[SubjectTarget]) -> Coverage:
        left = [target for target in targets if target.target_id not in self._covered]
        uncovered = tuple(target.path for target in left if target.is_reachable)
        unreachable = tuple(target.path for target in left if not target.is_reachable)
        covered = len(targets) - len(left)
        return Coverage(kind, covered, covered + len(uncovered), uncovered, unreachable)

    def _add_contradictions(self, added: _SuiteTest) -> None:
        for other in self._by_input.get(added.input_key, ()):
            is_corrected = other.test.test_id == added.test.replaces
            is_met = added.examined.status is TestStatus.PASSED
            if is_corrected and is_met:
                continue
            if contradict(added.test, added.examined, other.test, other.examined):
                one_id, other_id = added.test.test_id, other.test.test_id
                self._contradictions.append(Contradiction(one_id, other_id))
                self._add_finding(one_id, other_id)
                self._add_finding(other_id, one_id)

    def _add_finding(self, test_id: str, other_id: str) -> None:
        message = f"contradicts {other_id}, which has the same input."
        found = Finding("CONTRADICTION", "", message, Severity.WARNING)
        verdict = self._verdicts[test_id]
        self._verdicts[test_id] = replace(verdict, findings=(*verdict.findings, found))
