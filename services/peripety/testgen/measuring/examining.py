"""Execution of a single test, independent of other tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import Finding
from peripety.testgen.model import Examined, TestStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.model import TestCase
    from peripety.testgen.subjects.subject import Ran, Subject

__all__ = ["REPETITIONS", "examine"]

REPETITIONS = 5
"""Default number of runs of a test."""


def examine(
    subject: Subject, test: TestCase, repetitions: int = REPETITIONS, *, mutation: bool = True
) -> Examined:
    """Run a test several times, check its soundness, and find the mutants that it kills.

    The call blocks for all its runs, so it must not run on the event loop.

    Args:
        subject: the subject.
        test: the test.
        repetitions: the number of runs, at least one; a test that is not executable runs once.
        mutation: True to run it on the mutants as well.
    """
    problems = _problems(subject, test)
    if problems:
        return Examined(TestStatus.NOT_EXECUTABLE, 0, findings=problems)
    ran = _runs(subject, test, repetitions)
    first, status = ran[0], _status(ran)
    if status is TestStatus.NOT_EXECUTABLE:
        return Examined(status, len(ran), first.observed, first.findings)
    unsound = tuple(subject.soundness(test))
    findings = (*_findings(ran, status), *unsound)
    if status is not TestStatus.PASSED or unsound:
        return Examined(status, len(ran), first.observed, findings)
    kills = subject.kills(test, [one.mutant_id for one in subject.mutants]) if mutation else frozenset[str]()
    return Examined(status, len(ran), first.observed, findings, first.covered, kills)


def _problems(subject: Subject, test: TestCase) -> tuple[Finding, ...]:
    if test.body is None:
        return (Finding("BODY_MISSING", "/body", "the test is only described in words; add a body."),)
    return tuple(subject.problems(test.body))


def _runs(subject: Subject, test: TestCase, repetitions: int) -> list[Ran]:
    ran = [subject.run(test)]
    if ran[0].status is not TestStatus.NOT_EXECUTABLE:
        ran += (subject.run(test) for _ in range(repetitions - 1))
    return ran


def _status(ran: Sequence[Ran]) -> TestStatus:
    first = ran[0]
    is_same = all((one.status, one.trace) == (first.status, first.trace) for one in ran)
    return first.status if is_same else TestStatus.UNSTABLE


def _findings(ran: Sequence[Ran], status: TestStatus) -> tuple[Finding, ...]:
    if status is TestStatus.PASSED:
        return ran[0].findings
    if status is TestStatus.UNSTABLE:
        passed = sum(one.status is TestStatus.PASSED for one in ran)
        message = f"of {len(ran)} runs {passed} passed, and their results differ."
        return (Finding("UNSTABLE", "", message),)
    said = ran[0].findings
    return said or (Finding("EXPECTATION_NOT_MET", "", f"unexpected result: {ran[0].observed[:200]}"),)
