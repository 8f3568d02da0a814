"""What a file of tests is made from: a run as it stands, without anything secret."""

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
    """A command that tests are run on.

    Attributes:
        argv: the program and its first arguments.
        working_directory: copied for each run; None for an empty one.
        environment: names of the environment variables that it is given; their values may be secret and are
            in no file.
        timeout_seconds: most time of a run.
    """

    argv: tuple[str, ...]
    working_directory: str | None = None
    environment: tuple[str, ...] = ()
    timeout_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Source:
    """What tests are run on, so that they can be run again elsewhere.

    Attributes:
        kind: what it is.
        document: the scenario or the policy; None for a command.
        command: the command; None for a document.
    """

    kind: SubjectKind
    document: Mapping[str, Any] | None = None
    command: Command | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running a test showed, as it is told outside: `Verdict` without the whole lists of what it kills.

    Attributes:
        status: what became of it.
        runs: how often it was run.
        counts: whether it is executable, stable, sound, and adds something.
        findings: what is wrong with it.
        new_kills: ids of mutants that it kills and no test before it does.
        new_coverage: ids of targets that it covers and no test before it does.
        observed: what came out, for a person.
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
        """What a verdict says."""
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
        order: what it was to do.
        tested: what its tests are run on; None when they are text only.
        tests: those that are kept, in the order in which they were made.
        outcomes: what became of those that were run, by their ids.
        stats: the sums of the run.
    """

    run_id: str
    order: TestGenOrder
    tested: Source | None = None
    tests: tuple[TestCase, ...] = ()
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    stats: Stats = field(default_factory=Stats)

    def counts(self, test: TestCase) -> bool:
        """Whether a test counts."""
        outcome = self.outcomes.get(test.test_id)
        return outcome is not None and outcome.counts
