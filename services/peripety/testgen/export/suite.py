"""Export of a run as a file, without secrets: the JSON document with its parser, and the other formats.

The keys of the JSON document are the attributes of `ExportedSuite` and its parts; enums are their values.
`before` and `after` of a mutant are JSON texts. The version in `schema` increases with each incompatible
change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from peripety import engine
from peripety.core.mutation_testing import Coverage, Mutant, MutationScore
from peripety.errors import Finding, InvalidArgumentError
from peripety.gateway.types.response import UsageTotal
from peripety.testgen import events, types
from peripety.testgen.events import GenerationStats
from peripety.testgen.export import pytest_module, reports
from peripety.testgen.subject_source import PolicyDocument, ScenarioDocument
from peripety.testgen.subjects.http_service.document import DEFAULT_PORT
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import TestStatus

if TYPE_CHECKING:
    from peripety.testgen.store import RunRecord
    from peripety.testgen.subject_source import ResolvedSubject
    from peripety.testgen.types import CaseVerdict, TestCase, TestGenOrder


@dataclass(frozen=True, slots=True)
class ExportedCommand:
    """A command as subject.

    Attributes:
        argv: the program and its first arguments.
        working_directory: copied for each run; None for an empty one.
        environment: names of the environment variables; their values may be secret and are not exported.
        timeout_seconds: time limit of a run.
        function: the Python function in place of the program, as `package.module:name` or
            `package.module`.
        openapi: the OpenAPI document of the HTTP service that it starts; empty for no service.
        port: the port of the service.
        grpc: True if it starts a gRPC service.
    """

    argv: tuple[str, ...]
    working_directory: str | None = None
    environment: tuple[str, ...] = ()
    timeout_seconds: float = 10.0
    function: str = ""
    openapi: str = ""
    port: int = DEFAULT_PORT
    grpc: bool = False


@dataclass(frozen=True, slots=True)
class ExportedSubject:
    """The subject of tests, for running them elsewhere.

    Attributes:
        kind: its kind.
        document: the scenario or the policy; None for a command.
        command: the command; None for a document.
    """

    kind: SubjectKind
    document: Mapping[str, Any] | None = None
    command: ExportedCommand | None = None


@dataclass(frozen=True, slots=True)
class ExportedOutcome:
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
    def from_verdict(cls, verdict: CaseVerdict) -> ExportedOutcome:
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
class ExportedSuite:
    """A run and its tests.

    Attributes:
        run_id: the run.
        order: its input.
        tested: the subject of its tests; None for text only.
        tests: the tests in order, without dropped and superseded ones.
        outcomes: the results by test id.
        stats: the statistics of the run.
    """

    run_id: str
    order: TestGenOrder
    tested: ExportedSubject | None = None
    tests: tuple[TestCase, ...] = ()
    outcomes: Mapping[str, ExportedOutcome] = field(default_factory=dict)
    stats: GenerationStats = field(default_factory=GenerationStats)

    def counts(self, test: TestCase) -> bool:
        """Return True if a test counts."""
        outcome = self.outcomes.get(test.test_id)
        return outcome is not None and outcome.counts

    def is_redundant(self, test: TestCase) -> bool:
        """Return True for a baseline test of a command that describes its behaviour today, and adds nothing.

        Without a measurement, none is.
        """
        outcome = self.outcomes.get(test.test_id)
        is_command = self.tested is not None and self.tested.kind is SubjectKind.COMMAND
        is_described = is_command and test.is_combinatorial and not test.source
        is_measured = any(one.counts for one in self.outcomes.values())
        return (
            is_described
            and is_measured
            and outcome is not None
            and outcome.status is TestStatus.PASSED
            and not outcome.counts
            and not outcome.findings
        )


def to_exported_suite(run: RunRecord) -> ExportedSuite:
    """Return the tests of a run with their latest results."""
    return ExportedSuite(
        run_id=run.run_id,
        order=run.order,
        tested=None if run.subject is None else _to_exported_subject(run.subject),
        tests=tuple(run.run_state.current_tests),
        outcomes={name: ExportedOutcome.from_verdict(verdict) for name, verdict in run.verdicts.items()},
        stats=run.stats,
    )


def _to_exported_subject(subject: ResolvedSubject) -> ExportedSubject:
    match subject:
        case ScenarioDocument(document):
            return ExportedSubject(SubjectKind.SCENARIO, engine.parse(document))
        case PolicyDocument(document):
            return ExportedSubject(SubjectKind.POLICY, engine.parse(document))
        case command:
            told = ExportedCommand(
                command.argv,
                command.working_directory or None,
                tuple(command.environment),
                command.timeout_seconds,
                command.function,
                command.openapi,
                command.port,
                command.grpc,
            )
            return ExportedSubject(SubjectKind.COMMAND, command=told)


SUITE_SCHEMA = "peripety.testgen.suite/1"
"""The value of the key `schema`."""

_SUITE_ADAPTER: TypeAdapter[ExportedSuite] = TypeAdapter(ExportedSuite)
# The dataclasses import these names for type checkers only.
_SUITE_ADAPTER.rebuild(
    _types_namespace={
        **vars(types),
        **vars(events),
        **{
            kind.__name__: kind
            for kind in (Mapping, Finding, Coverage, Mutant, MutationScore, UsageTotal, SubjectKind)
        },
    },
)


def write_json(suite: ExportedSuite) -> bytes:
    """Return the document."""
    document = {"schema": SUITE_SCHEMA, **_SUITE_ADAPTER.dump_python(suite, mode="json")}
    # A lone surrogate, which UTF-8 cannot encode, becomes a JSON escape.
    return json.dumps(document, ensure_ascii=False, indent=2).encode(errors="backslashreplace") + b"\n"


def read_json(document: bytes) -> ExportedSuite:
    """Parse a document.

    Raises:
        InvalidArgumentError: the document is invalid, or of another version.
    """
    try:
        value: Any = json.loads(document)
        if not isinstance(value, dict) or value.pop("schema", None) != SUITE_SCHEMA:
            raise InvalidArgumentError(
                f"not a peripety test file: schema is not {SUITE_SCHEMA}",
                code="FILE_INVALID",
            )
        return _SUITE_ADAPTER.validate_python(value)
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        reason = f"at {place}: {error.errors()[0]['msg']}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise InvalidArgumentError(f"not a peripety test file: {reason}", code="FILE_INVALID")


MAX_PART_BYTES = 1024 * 1024


class TestFormat(Enum):
    """The format of an exported file."""

    __test__ = False

    PYTEST = "pytest"
    """A module."""
    JSON = "json"
    """All data as one document."""
    JUNIT = "junit"
    """The latest results of the tests."""
    SARIF = "sarif"
    """The findings: tests with a source that fail."""
    MARKDOWN = "markdown"
    """A summary of the run."""


_RENDERERS = {
    TestFormat.JSON: write_json,
    TestFormat.JUNIT: reports.write_junit,
    TestFormat.SARIF: reports.write_sarif,
    TestFormat.MARKDOWN: reports.write_markdown,
}


@dataclass(frozen=True, slots=True)
class RenderedSuite:
    """An exported file.

    Attributes:
        parts: its content, in order, each of at most `MAX_PART_BYTES`.
        written: the number of tests in it.
        known: the number of tests that the extended module has already.
    """

    parts: tuple[bytes, ...]
    written: int
    known: int = 0


def render(
    suite: ExportedSuite,
    test_format: TestFormat,
    *,
    counting_only: bool = False,
    with_redundant: bool = False,
    directory: str = "",
    append_to: bytes = b"",
) -> RenderedSuite:
    """Render the tests of a run as a file; equal suites give equal bytes.

    Args:
        suite: the run and its tests.
        test_format: the format.
        counting_only: True to leave out tests that do not count.
        with_redundant: True for a pytest module with the tests that `ExportedSuite.is_redundant` leaves out.
        directory: the absolute path of the directory of the file; empty if it is not known.
        append_to: a pytest module to which the tests are added; empty for a new file.

    Raises:
        InvalidArgumentError: the module to extend cannot be read.
    """
    if test_format is TestFormat.PYTEST and not with_redundant:
        suite = replace(suite, tests=tuple(test for test in suite.tests if not suite.is_redundant(test)))
    if counting_only:
        suite = replace(suite, tests=tuple(test for test in suite.tests if suite.counts(test)))
    if test_format is TestFormat.PYTEST:
        module = pytest_module.write_pytest(suite, directory, append_to)
        content, written, known = module.content, module.written, module.known
    else:
        content, written, known = _RENDERERS[test_format](suite), len(suite.tests), 0
    parts = (content[at : at + MAX_PART_BYTES] for at in range(0, len(content), MAX_PART_BYTES))
    return RenderedSuite(tuple(parts), written, known)
