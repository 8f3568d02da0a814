"""Exportable form of a run, without secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.testgen.events import Stats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding
    from peripety.testgen.model import TestCase, TestGenOrder, TestStatus, Verdict
    from peripety.testgen.subjects.subject import SubjectKind

__all__ = ["Command", "Outcome", "Source", "Suite"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command as subject.

    Attributes:
        argv: the program and its first arguments.
        working_directory: copied for each run; None for an empty one.
        environment: names of the environment variables; their values may be secret and are not exported.
        timeout_seconds: time limit of a run.
    """

    argv: tuple[str, ...]
    working_directory: str | None = None
    environment: tuple[str, ...] = ()
    timeout_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Source:
    """The subject of tests, for running them elsewhere.

    Attributes:
        kind: its kind.
        document: the scenario or the policy; None for a command.
        command: the command; None for a document.
    """

    kind: SubjectKind
    document: Mapping[str, Any] | None = None
    command: Command | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exported result of a test: `Verdict` without the complete lists of kills and covered targets.

    Attributes:
        status: the result.
        runs: the number of runs.
        counts: True if it is executable, stable, sound, and adds something.
        findings: its defects.
        new_kills: ids of mutants that it kills and no earlier test does.
        new_coverage: ids of targets that it covers and no earlier test does.
        observed: the observed output, for display.
    """

    status: TestStatus
    runs: int
    counts: bool
    findings: tuple[Finding, ...] = ()
    new_kills: tuple[str, ...] = ()
    new_coverage: tuple[str, ...] = ()
    observed: str = ""

    @classmethod
    def of(cls, verdict: Verdict) -> Outcome:
        """Convert a verdict."""
        examined = verdict.examined
        return cls(
            examined.status,
            examined.runs,
            verdict.counts,
            verdict.findings,
            verdict.new_kills,
            verdict.new_coverage,
            examined.observed,
        )


@dataclass(frozen=True, slots=True)
class Suite:
    """A run and its tests.

    Attributes:
        run_id: the run.
        order: its input.
        tested: the subject of its tests; None for text only.
        tests: the tests in order, without dropped ones.
        outcomes: the results by test id.
        stats: the statistics of the run.
    """

    run_id: str
    order: TestGenOrder
    tested: Source | None = None
    tests: tuple[TestCase, ...] = ()
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    stats: Stats = field(default_factory=Stats)

    def counts(self, test: TestCase) -> bool:
        """Return True if a test counts."""
        outcome = self.outcomes.get(test.test_id)
        return outcome is not None and outcome.counts
