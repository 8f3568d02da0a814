"""A subject that runs no test twice, since the same tests come up again for every model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.subject import RunResult
from peripety.testgen.types import TestStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.errors import Finding
    from peripety.testgen.subjects.subject import Subject, SubjectKind, SubjectTarget
    from peripety.testgen.types import DraftTest, TaskContext, TestCase


class Remembering:
    """Another subject, each of whose answers is worked out once.

    Args:
        subject: the other one, which gives the same answer every time.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._ran: dict[str, RunResult] = {}
        self._kills: dict[str, dict[str, bool]] = {}
        self._same: dict[str, bool] = {}
        self._floor: list[DraftTest] | None = None

    @property
    def is_fenced(self) -> bool | None:
        return self._subject.is_fenced

    @property
    def kind(self) -> SubjectKind:
        return self._subject.kind

    @property
    def context(self) -> TaskContext:
        return self._subject.context

    @property
    def material(self) -> Mapping[str, Any]:
        return self._subject.material

    @property
    def body_schema(self) -> Mapping[str, Any]:
        return self._subject.body_schema

    @property
    def targets(self) -> Sequence[SubjectTarget]:
        return self._subject.targets

    @property
    def mutants(self) -> Sequence[Mutant]:
        return self._subject.mutants

    def excerpts(self, paths: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self._subject.excerpts(paths)

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:
        return self._subject.further_mutants(known, count)

    @property
    def unmeasured_lines(self) -> Mapping[str, int]:
        return self._subject.unmeasured_lines

    @property
    def changed_since(self) -> str:
        return self._subject.changed_since

    @property
    def unmutated(self) -> str:
        return self._subject.unmutated

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        return self._subject.problems(body)

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        return self._subject.soundness(test)

    def same_input(self, body: Mapping[str, Any]) -> Any:
        return self._subject.same_input(body)

    def run(self, test: TestCase) -> RunResult:
        key = key_of(test)
        if key not in self._ran:
            self._ran[key] = self._subject.run(test)
        return self._ran[key]

    def ran(self, test: TestCase) -> RunResult:
        """The same of a test that perhaps cannot be run at all."""
        problems = () if test.body is None else self.problems(test.body)
        if test.body is None or problems:
            return RunResult(TestStatus.NOT_EXECUTABLE, "", "", (*problems,))
        return self.run(test)

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        found = self._kills.setdefault(key_of(test), {})
        new = [one for one in among if one not in found]
        killed = self._subject.kills(test, new) if new else frozenset[str]()
        found.update((one, one in killed) for one in new)
        return frozenset(one for one in among if found[one])

    @property
    def killed(self) -> frozenset[str]:
        """Mutants killed by any test checked so far."""
        return frozenset(
            one for found in self._kills.values() for one, is_killed in found.items() if is_killed
        )

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        new = [one for one in among if one not in self._same]
        same = self._subject.equivalent(new) if new else frozenset[str]()
        self._same |= {one: one in same for one in new}
        return frozenset(one for one in among if self._same[one])

    def baseline_tests(self) -> Iterable[DraftTest]:
        if self._floor is None:
            self._floor = [*self._subject.baseline_tests()]
        return self._floor


def key_of(test: TestCase | DraftTest) -> str:
    """Return what a test runs and expects, as text."""
    return json.dumps([test.body, test.expected_output], sort_keys=True)
