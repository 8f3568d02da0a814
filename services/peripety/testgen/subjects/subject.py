"""Port to the subjects of tests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from peripety.errors import Finding
    from peripety.quality import Mutant
    from peripety.testgen.model import Draft, TaskContext, TestCase, TestStatus

__all__ = ["Ran", "Subject", "SubjectKind", "Target"]


class SubjectKind(Enum):
    """The kind of a subject."""

    SCENARIO = "scenario"
    POLICY = "policy"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Target:
    """A part of a subject that tests can cover.

    Attributes:
        kind: stable lower_snake_case name of the kind, such as `rule`.
        path: unique within its kind; a JSON Pointer into the subject's document if there is one.
        description: an instruction to cover it, for the model; a short sentence.
        is_reachable: False if it is proved that no test can cover it.
    """

    kind: str
    path: str
    description: str
    is_reachable: bool = True

    @property
    def target_id(self) -> str:
        """Unique among all targets of the subject."""
        return f"{self.kind}:{self.path}"


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one run of a test.

    Attributes:
        status: passed, failed or not executable.
        observed: the observed output, for display, at most 4 KiB.
        trace: a digest of everything observable; equal for two runs of a stable test.
        findings: the reasons for a failure; `path` points into the body.
        covered: ids of the covered targets.
    """

    status: TestStatus
    observed: str
    trace: str
    findings: tuple[Finding, ...] = ()
    covered: frozenset[str] = frozenset()


class Subject(Protocol):
    """A subject of tests. Its methods block, so they must run in a worker thread.

    Equal subjects give equal results, in the same order, in every process and on both engine cores.
    """

    @property
    def kind(self) -> SubjectKind:
        """The kind."""
        ...

    @property
    def context(self) -> TaskContext:
        """The task context with matching categories."""
        ...

    @property
    def material(self) -> Mapping[str, Any]:
        """The description for the model: a deterministic JSON object without secrets."""
        ...

    @property
    def body_schema(self) -> Mapping[str, Any]:
        """JSON Schema of the body of a test, with descriptions for a model; suitable for strict modes."""
        ...

    @property
    def targets(self) -> Sequence[Target]:
        """All targets, in a stable order."""
        ...

    @property
    def mutants(self) -> Sequence[Mutant]:
        """All mutants, in a stable order, each with the outcome SURVIVED."""
        ...

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return the reasons why a body that fits the schema is not executable."""
        ...

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        """Return the reasons why a test is worthless.

        `STUB` means no expectation; `TAUTOLOGY` means an expectation that holds for any behaviour.
        """
        ...

    def same_input(self, body: Mapping[str, Any]) -> Any:
        """Return the input part of a body, without expectations: JSON, in canonical order."""
        ...

    def run(self, test: TestCase) -> Ran:
        """Run a test once."""
        ...

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        """Return the given mutants on which a passing test fails."""
        ...

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        """Return the given mutants that are proved equivalent to the subject."""
        ...

    def floor(self) -> Iterable[Draft]:
        """Yield baseline tests, which follow from the schema: boundary values and pairs of values.

        They expect the current behaviour of the subject. Their categories are those of the context.
        """
        ...
