"""Tests are run several times, and only those that hold and look at something kill and cover.

A suite knows what each test adds, which tests repeat or contradict others, and what is left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from peripety.testgen.evaluation import suite as suite_module
from peripety.testgen.evaluation.suite import DEFAULT_REPETITIONS, Contradiction, MeasuredSuite, evaluate_test
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.fake_run import ToySubject, toy_test

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.testgen.subjects.subject import RunResult
    from peripety.testgen.types import CaseVerdict


class Counting(ToySubject):
    """Toy subject with scripted statuses that counts its runs."""

    def __init__(self, statuses: Sequence[TestStatus] = ()) -> None:
        super().__init__()
        self.runs = 0
        self.asked_for_kills = 0
        self._statuses = statuses

    def run(self, test: TestCase) -> RunResult:
        self.runs += 1
        ran = super().run(test)
        return replace(ran, status=self._statuses[self.runs - 1], findings=()) if self._statuses else ran

    def kills(self, test: TestCase, among: object) -> frozenset[str]:
        self.asked_for_kills += 1
        return super().kills(test, among)  # type: ignore[arg-type]


def codes(findings: Sequence[object]) -> list[str]:
    return [finding.code for finding in findings]  # type: ignore[attr-defined]


def test_a_test_that_holds_covers_and_kills() -> None:
    subject = Counting()
    examined = evaluate_test(subject, toy_test("t1", 4, 6, 10))
    assert (examined.status, examined.runs, examined.observed) == (TestStatus.PASSED, 5, "10")
    assert subject.runs == DEFAULT_REPETITIONS == 5
    assert examined.covered == {"side:/below"}
    assert examined.kills == {"difference", "bound_less", "always_zero"}
    assert not examined.findings


def test_a_test_that_fails_shows_what_came_out_and_kills_nothing() -> None:
    subject = Counting()
    examined = evaluate_test(subject, toy_test("t1", 1, 1, 3))
    assert (examined.status, examined.observed) == (TestStatus.FAILED, "2")
    assert codes(examined.findings) == ["EXPECTATION_NOT_MET"]
    assert examined.findings[0].path == "/equals"
    assert not examined.covered
    assert not examined.kills
    assert not subject.asked_for_kills


def test_a_failure_that_its_subject_says_nothing_about_is_told_all_the_same() -> None:
    examined = evaluate_test(Counting([TestStatus.FAILED] * 5), toy_test("t1", 1, 1, 2))
    assert codes(examined.findings) == ["EXPECTATION_NOT_MET"]
    assert examined.findings[0].message.endswith(": 2")


def test_a_test_that_passes_and_fails_is_unstable() -> None:
    statuses = [TestStatus.PASSED] * 4 + [TestStatus.FAILED]
    examined = evaluate_test(Counting(statuses), toy_test("t1", 1, 1, 2))
    assert examined.status is TestStatus.UNSTABLE
    assert codes(examined.findings) == ["UNSTABLE"]
    assert "4 passed" in examined.findings[0].message
    assert not examined.kills


def test_a_test_that_always_passes_and_never_shows_the_same_is_unstable() -> None:
    examined = evaluate_test(ToySubject(flaky=True), toy_test("t1", 1, 1, 2))
    assert examined.status is TestStatus.UNSTABLE
    assert not examined.covered


def test_a_stub_passes_and_kills_and_covers_nothing() -> None:
    subject = Counting()
    examined = evaluate_test(subject, toy_test("t1", 1, 1, None))
    assert examined.status is TestStatus.PASSED
    assert codes(examined.findings) == ["STUB"]
    assert not examined.covered
    assert not examined.kills
    assert not subject.asked_for_kills


def test_a_body_that_cannot_be_run_is_not_run() -> None:
    subject = Counting()
    examined = evaluate_test(subject, toy_test("t1", 1, 1, 2, body={"one": "x"}))
    assert (examined.status, examined.runs, subject.runs) == (TestStatus.NOT_EXECUTABLE, 0, 0)
    assert codes(examined.findings) == ["NOT_A_NUMBER"]


def test_words_alone_cannot_be_run() -> None:
    examined = evaluate_test(ToySubject(), TestCase("t1", "boundary", "the sum of both"))
    assert examined.status is TestStatus.NOT_EXECUTABLE
    assert codes(examined.findings) == ["BODY_MISSING"]


def test_what_turns_out_not_to_be_executable_is_tried_once() -> None:
    subject = Counting([TestStatus.NOT_EXECUTABLE])
    examined = evaluate_test(subject, toy_test("t1", 1, 1, 2))
    assert (examined.status, examined.runs) == (TestStatus.NOT_EXECUTABLE, 1)


def test_the_caller_says_how_often() -> None:
    assert evaluate_test(ToySubject(), toy_test("t1", 1, 1, 2), repetitions=2).runs == 2


class Suite(MeasuredSuite):
    """Examines what is added to it."""

    def __init__(self, subject: ToySubject | None = None) -> None:
        self.toy = subject or ToySubject()
        super().__init__(self.toy)

    def see(self, test: TestCase) -> CaseVerdict:
        return self.add(test, evaluate_test(self.toy, test))


def found_in(verdict: CaseVerdict) -> list[str]:
    return [finding.code for finding in verdict.findings]


def test_a_test_counts_for_what_no_test_before_it_does() -> None:
    suite = Suite()
    first, second = suite.see(toy_test("t1", 1, 2, 3)), suite.see(toy_test("t2", 9, 9, 10))
    assert first.counts
    assert first.new_kills == ("difference", "one_more", "always_zero")
    assert first.new_coverage == ("side:/below",)
    assert second.counts
    assert second.new_kills == ("unbounded", "bound_less", "bound_more")
    assert second.new_coverage == ("side:/above",)


def test_a_test_that_adds_nothing_does_not_count() -> None:
    suite = Suite()
    suite.see(toy_test("t1", 1, 2, 3))
    assert not suite.see(toy_test("t2", 0, 4, 4)).counts
    assert suite.quality.counting_tests == 1


@pytest.mark.parametrize(
    ("test", "status"),
    [
        (toy_test("t1", 1, 2, None), TestStatus.PASSED),
        (toy_test("t1", 1, 2, 4), TestStatus.FAILED),
        (toy_test("t1", 1, 2, 3, body={"one": 1}), TestStatus.NOT_EXECUTABLE),
        (TestCase("t1", "boundary", "words"), TestStatus.NOT_EXECUTABLE),
    ],
)
def test_a_worthless_test_does_not_count_and_hides_nothing_from_those_after_it(
    test: TestCase,
    status: TestStatus,
) -> None:
    suite = Suite()
    verdict = suite.see(test)
    assert (verdict.examined.status, verdict.counts) == (status, False)
    assert verdict.findings
    assert suite.see(toy_test("t2", 1, 2, 3)).new_kills == ("difference", "one_more", "always_zero")
    assert len(suite.vectors) == 1


def test_an_unstable_test_does_not_count() -> None:
    verdict = Suite(ToySubject(flaky=True)).see(toy_test("t1", 1, 2, 3))
    assert (verdict.examined.status, verdict.counts) == (TestStatus.UNSTABLE, False)


def test_a_mutant_that_three_tests_kill_is_not_run_again() -> None:
    suite = Suite()
    everything = {mutant.mutant_id for mutant in suite.toy.mutants}
    killed: set[str] = set()
    for number in range(3):
        assert {*suite.unsettled_mutants} == everything
        examined = suite.see(toy_test(f"t{number}", 1, 2 + number, 3 + number)).examined
        killed |= examined.kills
    assert killed
    assert {*suite.unsettled_mutants} == everything - killed


class Deep(ToySubject):
    """Toy subject with further mutants beyond a sample of two."""

    @property
    def mutants(self) -> Sequence[Mutant]:
        return super().mutants[:2]

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:
        return super().mutants[known : known + min(count, 3)]


def test_further_mutants_are_measured_while_few_survive() -> None:
    suite = Suite(Deep())
    suite.see(toy_test("t1", 1, 2, 3))
    suite.see(toy_test("t2", 9, 9, 10))
    assert not suite.survivors
    assert {*suite.widen(lambda: True)} == {"t1", "t2"}
    assert not suite.widen(lambda: True)
    whole = Suite()
    for test in (toy_test("t1", 1, 2, 3), toy_test("t2", 9, 9, 10)):
        whole.see(test)
    assert suite.quality == whole.quality
    own, other = (
        {one for name in ("t1", "t2") for one in seen.verdict(name).new_kills} for seen in (suite, whole)
    )
    assert own == other


class Unreached(Deep):
    """Toy subject whose sample is in a place that only negative sums cover."""

    @property
    def mutants(self) -> Sequence[Mutant]:
        return [replace(mutant, target="/negative") for mutant in super().mutants]


def test_survivors_in_places_that_no_test_covers_do_not_keep_further_mutants_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suite_module, "_ENOUGH_SURVIVORS", 2)
    suite, reached = Suite(Unreached()), Suite(Deep())
    for one in (suite, reached):
        one.see(toy_test("t1", 1, 0, 1))
        assert [mutant.mutant_id for mutant in one.survivors] == ["difference", "unbounded"]
    assert len(reached.reached_survivors) == 2
    assert not reached.widen(lambda: True)
    assert not suite.reached_survivors
    assert suite.widen(lambda: True) == ["t1"]
    assert suite.verdict("t1").new_kills == ("one_more",)
    assert [mutant.mutant_id for mutant in suite.reached_survivors] == ["bound_less", "bound_more"]
    suite.see(toy_test("t2", -3, 1, -2))
    assert "unbounded" in {mutant.mutant_id for mutant in suite.reached_survivors}


def test_after_tests_that_reach_nothing_new_further_mutants_are_measured_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suite_module, "_ENOUGH_SURVIVORS", 2)
    suite = Suite(Deep())
    suite.see(toy_test("t1", 1, 0, 1))
    assert not suite.widen(lambda: True)
    assert suite.widen(lambda: True, is_idle=True) == ["t1"]
    assert [len(suite.survivors), suite.quality.mutation and suite.quality.mutation.killed] == [4, 1]
    assert not suite.widen(lambda: True)


def test_without_time_no_further_mutant_counts() -> None:
    suite = Suite(Deep())
    suite.see(toy_test("t1", 1, 2, 3))
    before = suite.quality
    assert not suite.widen(lambda: False)
    assert suite.quality == before


def test_further_mutants_are_continued_with_after_the_time_limit() -> None:
    suite, whole, asked = Suite(Deep()), Suite(Deep()), Counter[str]()
    for test in (toy_test("t1", 1, 2, 3), toy_test("t2", 9, 9, 10)):
        suite.see(test)
        whole.see(test)
    whole.widen(lambda: True)
    kills = suite.toy.kills

    def counted(test: TestCase, among: Collection[str]) -> frozenset[str]:
        asked[test.test_id] += 1
        return kills(test, among)

    suite.toy.kills = counted  # type: ignore[method-assign]
    for _ in range(6):
        left = iter((True,))
        suite.widen(lambda left=left: next(left, False))  # type: ignore[misc]
    assert suite.quality == whole.quality
    assert max(asked.values()) <= 2  # of two times three further mutants


def test_the_further_mutants_of_an_earlier_measurement_are_known_again() -> None:
    earlier = Suite(Deep())
    earlier.see(toy_test("t1", 1, 2, 3))
    earlier.widen(lambda: True)
    mutation = earlier.quality.mutation
    assert mutation is not None
    later = Suite(Deep())
    later.know({one.mutant_id for one in mutation.survivors} | earlier.verdict("t1").examined.kills)
    later.add(toy_test("t1", 1, 2, 3), earlier.verdict("t1").examined)
    assert later.quality == earlier.quality


def test_a_correction_does_not_contradict_the_test_that_it_replaces() -> None:
    for replaces, contradictions in (("", 1), ("t1", 0)):
        suite = Suite()
        suite.see(toy_test("t1", 1, 2, 4))
        suite.see(toy_test("t2", 1, 2, 3, replaces=replaces))
        assert len(suite.contradictions) == contradictions


def test_survivors_are_those_that_no_test_kills_and_nobody_proved_to_mean_the_same() -> None:
    suite = Suite()
    suite.see(toy_test("t1", 1, 2, 3))
    assert [mutant.mutant_id for mutant in suite.survivors] == ["unbounded", "bound_less", "bound_more"]
    suite.see(toy_test("t2", 9, 9, 10))
    assert suite.survivors == ()


def test_a_mutant_is_compared_once_and_only_while_it_survives() -> None:
    suite = Suite()
    assert not suite.toy.compared
    suite.see(toy_test("t1", 1, 2, 3))
    assert suite.survivors == suite.survivors
    suite.see(toy_test("t2", 9, 9, 10))
    assert suite.quality.mutation is not None
    assert suite.toy.compared == [["unbounded", "bound_less", "bound_more", "turned"]]


def test_quality_counts_mutants_and_covered_targets_by_kind() -> None:
    suite = Suite()
    suite.see(toy_test("t1", 1, 2, 3))
    quality = suite.quality
    assert quality.mutation is not None
    assert (quality.mutation.killed, quality.mutation.survived, quality.mutation.equivalent) == (3, 3, 1)
    assert quality.mutation.score == 0.5
    assert quality.mutation.survivors == suite.survivors
    side, sign = quality.coverage
    assert (side.kind, side.covered, side.reachable) == ("side", 1, 2)
    assert (side.uncovered, side.unreachable) == (("/above",), ("/both",))
    assert (sign.kind, sign.covered, sign.reachable, sign.uncovered) == ("sign", 0, 1, ("/negative",))


def test_uncovered_are_the_targets_that_some_test_could_cover() -> None:
    suite = Suite()
    assert [target.path for target in suite.uncovered] == ["/below", "/above", "/negative"]
    suite.see(toy_test("t1", -1, -2, -3))
    assert [target.path for target in suite.uncovered] == ["/above"]


def test_two_that_expect_otherwise_of_one_input_are_both_found_to_contradict() -> None:
    suite = Suite()
    suite.see(toy_test("t1", 1, 2, 4))
    later = suite.see(toy_test("t2", 1, 2, 3))
    assert suite.contradictions == (Contradiction("t2", "t1"),)
    assert "CONTRADICTION" in found_in(later)
    assert "CONTRADICTION" in found_in(suite.verdict("t1"))
    assert later.counts  # the one that holds


def test_of_two_wrong_ones_exact_results_contradict() -> None:
    suite = Suite()
    suite.see(toy_test("t1", 1, 2, 4))
    suite.see(toy_test("t2", 1, 2, 5))
    assert suite.contradictions == (Contradiction("t2", "t1"),)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (toy_test("t1", 1, 2, 3), toy_test("t2", 1, 2, None, below=4)),  # both hold
        (toy_test("t1", 1, 2, 3), toy_test("t2", 1, 2, None, below=2)),  # wrong about something else
        (toy_test("t1", 1, 2, 4), toy_test("t2", 2, 2, 3)),  # other inputs
        (toy_test("t1", 1, 2, 4), toy_test("t2", 1, 2, None)),  # one has no expectation
        (toy_test("t1", 1, 2, 3, body={"one": 1}), toy_test("t2", 1, 2, 4, body={"one": 1, "equals": 4})),
    ],
)
def test_what_can_both_be_right_or_cannot_be_known_is_no_contradiction(
    first: TestCase,
    second: TestCase,
) -> None:
    suite = Suite()
    suite.see(first)
    suite.see(second)
    assert suite.contradictions == ()


def test_the_same_tests_make_the_same_suite() -> None:
    tests = [toy_test(f"t{n}", n % 7, n % 5, min(n % 7 + n % 5, 10) + (n % 4 == 0)) for n in range(30)]
    one, other = Suite(), Suite()
    assert [one.see(test) for test in tests] == [other.see(test) for test in tests]
    assert (one.quality, one.vectors, one.contradictions) == (
        other.quality,
        other.vectors,
        other.contradictions,
    )
