"""Conversion of a stored run to an exportable suite, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.testgen.outputs import Command, Outcome, Source, Suite
from peripety.testgen.sources import PolicyDocument, ScenarioDocument
from peripety.testgen.subjects.subject import SubjectKind

if TYPE_CHECKING:
    from peripety.testgen.sources import KeptSubject
    from peripety.testgen.stored import Run

__all__ = ["suite_of"]


def suite_of(run: Run) -> Suite:
    """Return the tests of a run with their latest results."""
    return Suite(
        run_id=run.run_id,
        order=run.order,
        tested=None if run.subject is None else _source(run.subject),
        tests=tuple(run.so_far.tests.values()),
        outcomes={name: Outcome.of(verdict) for name, verdict in run.verdicts.items()},
        stats=run.stats,
    )


def _source(subject: KeptSubject) -> Source:
    match subject:
        case ScenarioDocument(document):
            return Source(SubjectKind.SCENARIO, sim.parse(document))
        case PolicyDocument(document):
            return Source(SubjectKind.POLICY, sim.parse(document))
        case command:
            told = Command(
                command.argv,
                command.working_directory or None,
                tuple(command.environment),
                command.timeout_seconds,
            )
            return Source(SubjectKind.COMMAND, command=told)
