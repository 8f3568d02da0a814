"""Task that measures test generation."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from peripety.testgen.types import TestCase, TestStatus
from support.testgen.graded_tests.remembering import Remembering

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from peripety.testgen.subjects.subject import Subject


@dataclass(frozen=True, eq=False)
class HiddenTest:
    """Test of a hidden suite.

    Attributes:
        category: the category that its author would choose.
        input: its input, in one line.
        body: the body that is run.
        expected_output: the expected output, if it is not in the body.
    """

    category: str
    input: str
    body: Mapping[str, Any]
    expected_output: str | None = None

    @cached_property
    def case(self) -> TestCase:
        """The same, to be run."""
        return TestCase(
            self.input,
            self.category,
            self.input,
            self.expected_output,
            body=json.loads(json.dumps(self.body)),
        )


class Task:
    """Something to be tested, and what a careful author would test it with.

    Args:
        name: of the task.
        description: what is to be tested, in words.
        subject: the same, to run tests on.
        hidden: the tests of the careful author, in the order of their writing.
    """

    def __init__(self, name: str, description: str, subject: Subject, hidden: Sequence[HiddenTest]) -> None:
        self.name = name
        self.description = description
        self.subject = Remembering(subject)
        # Prompts list only the beginnings of the lines of existing tests, so a number makes each unique.
        self.hidden = tuple(
            replace(test, input=f"{number}. {test.input}") for number, test in enumerate(hidden, start=1)
        )

    @cached_property
    def mutants(self) -> frozenset[str]:
        """The mutants that are not proved to mean the same as the subject."""
        every = [mutant.mutant_id for mutant in self.subject.mutants]
        return frozenset(every) - self.subject.equivalent(every)

    @cached_property
    def _targets(self) -> frozenset[str]:
        return frozenset(target.target_id for target in self.subject.targets)

    @cached_property
    def _covered(self) -> Mapping[HiddenTest, frozenset[str]]:
        return {test: self.subject.ran(test.case).covered for test in self._checked()}

    def reach(self, test: HiddenTest, wanted: Collection[str]) -> frozenset[str]:
        """Return those of some mutants and targets that a hidden test kills or covers."""
        targets = self._targets.intersection(wanted)
        among = frozenset(wanted) - targets
        killed = self.subject.kills(test.case, among) if among else frozenset[str]()
        return (self._covered[test] & targets) | killed

    def killed(self, tests: Sequence[TestCase]) -> frozenset[str]:
        """The mutants that some tests kill, of which each holds."""
        every = [mutant.mutant_id for mutant in self.subject.mutants]
        return frozenset[str]().union(*(self.subject.kills(test, every) for test in tests)) & self.mutants

    def holds(self, test: TestCase) -> bool:
        """Return True if a test can be run and passes."""
        return self.subject.ran(test).status is TestStatus.PASSED

    def _checked(self) -> Sequence[HiddenTest]:
        wrong = [test.input for test in self.hidden if not self.holds(test.case)]
        assert not wrong, f"{self.name} does not do what its hidden suite says: {wrong}"
        return self.hidden
