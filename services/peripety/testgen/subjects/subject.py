"""The port to whatever tests are run on."""

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
    """The kinds of subjects."""

    SCENARIO = "scenario"
    POLICY = "policy"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Target:
    """A part of a subject that tests can cover.

    Attributes:
        kind: stable lower_snake_case name of the kind, such as `rule`.
        path: names it among those of its kind; a JSON Pointer into the subject's document where it has one.
        description: what to do to cover it, for the model; a short sentence.
        is_reachable: False when it was proved that no test can.
    """

    kind: str
    path: str
    description: str
    is_reachable: bool = True

    @property
    def target_id(self) -> str:
        """Names it among all targets of its subject."""
        return f"{self.kind}:{self.path}"


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of a test showed.

    Attributes:
        status: passed, failed or not executable.
        observed: what came out, for a person, at most 4 KiB.
        trace: a digest of all that could be seen; two runs of a stable test have the same.
        findings: why it failed or could not be run; `path` points into the body.
        covered: ids of the targets that it went over.
    """

    status: TestStatus
    observed: str
    trace: str
    findings: tuple[Finding, ...] = ()
    covered: frozenset[str] = frozenset()


class Subject(Protocol):
    """What tests are run on. Its methods take time and no event loop: call them in a worker thread.

    The same subject gives the same answers, in the same order, in every process and on both cores.
    """

    @property
    def kind(self) -> SubjectKind:
        """What it is."""
        ...

    @property
    def context(self) -> TaskContext:
        """The context whose categories fit it."""
        ...

    @property
    def material(self) -> Mapping[str, Any]:
        """What a model is told of it: a JSON object, the same bytes every time, without anything secret."""
        ...

    @property
    def body_schema(self) -> Mapping[str, Any]:
        """JSON Schema of the body of a test, with descriptions for a model; strict modes can take it."""
        ...

    @property
    def targets(self) -> Sequence[Target]:
        """All that tests can cover, in a stable order."""
        ...

    @property
    def mutants(self) -> Sequence[Mutant]:
        """Small changes that tests should notice, in a stable order, each told as SURVIVED."""
        ...

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """What keeps a body that fits the schema from being run; empty when nothing does."""
        ...

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        """What makes a test worthless; empty when it looks at something.

        `STUB` when it expects nothing, `TAUTOLOGY` when what it expects holds whatever the subject does.
        """
        ...

    def same_input(self, body: Mapping[str, Any]) -> Any:
        """The part of a body that is given, without what is expected: JSON, in canonical order."""
        ...

    def run(self, test: TestCase) -> Ran:
        """Run a test once."""
        ...

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        """Of some mutants, by their ids, those on which a test that passes here fails."""
        ...

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        """Of some mutants, by their ids, those that are proved to mean the same as the subject."""
        ...

    def floor(self) -> Iterable[Draft]:
        """Tests that follow from the schema without a model: boundary values and pairs of values.

        They expect what the subject does now. Their category is one of the context's.
        """
        ...
