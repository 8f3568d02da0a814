"""Tests are run several times, and only those that hold and look at something kill and cover."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.testgen.evaluation.suite import DEFAULT_REPETITIONS, evaluate_test
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.fake_run import ToySubject, toy_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.subjects.subject import RunResult


class Counting(ToySubject):
    """Says what it is told to, run by run, and counts."""

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
