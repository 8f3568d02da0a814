"""What tests are worth that somebody would hand over."""

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
    """What came of one model with one task.

    Attributes:
        score: the share of mutants that mean something else and are killed, by tests that hold.
        stubs: tests that expect nothing.
        wrong: tests that cannot be run, or are not met by what is right.
        tests: in all.
        calls: questions to the model.
        tokens: that they took.
        said: what the model thinks of it, from 0 to 1; None when it was not asked.
    """

    score: float
    stubs: int
    wrong: int
    tests: int
    calls: int
    tokens: int
    said: float | None


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
        said=None if made.score is None else made.score / 10,
    )


def _is_stub(task: Task, made: Made, test: TestCase) -> bool:
    """Whether its author wrote it so, or it is one by what it says."""
    if json.dumps(test.body, sort_keys=True) in made.stubs:
        return True
    return task.holds(test) and bool(task.subject.soundness(test))
