"""Quality measurement of a set of tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.testgen.types import TestCase
    from support.testgen.graded_tests.columns import Made
    from support.testgen.graded_tests.tasks import Task


@dataclass(frozen=True)
class Figures:
    """Measurements of one model with one task.

    Attributes:
        score: the mutation score: share of non-equivalent mutants killed by correct tests.
        stubs: tests without expectations.
        wrong: tests that cannot be run, or that fail on the correct subject.
        tests: number of tests.
        calls: number of prompts.
        tokens: tokens used.
        own_score: the model's own assessment, from 0 to 1; None if it was not requested.
    """

    score: float
    stubs: int
    wrong: int
    tests: int
    calls: int
    tokens: int
    own_score: float | None


def measured(task: Task, made: Made) -> Figures:
    """Measure the tests of a way to make them."""
    right = [test for test in made.tests if task.holds(test)]
    return Figures(
        score=len(task.killed([test for test in right if not _is_stub(task, made, test)]))
        / len(task.mutants),
        stubs=sum(_is_stub(task, made, test) for test in made.tests),
        wrong=len(made.tests) - len(right),
        tests=len(made.tests),
        calls=made.calls,
        tokens=made.tokens,
        own_score=None if made.score is None else made.score / 10,
    )


def _is_stub(task: Task, made: Made, test: TestCase) -> bool:
    """Return True if the model wrote the test as a stub, or if the test is unsound."""
    if json.dumps(test.body, sort_keys=True) in made.stubs:
        return True
    return task.holds(test) and bool(task.subject.soundness(test))
