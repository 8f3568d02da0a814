"""Port to the subjects of tests, the schema of test bodies, and pairwise values.

Models may get the form of a body wrong, so it is validated. Pairwise combination gives a covering array of
strength two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from covertable import make

from peripety.engine.schema_validation import validate_against_schema
from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.testgen.types import DraftTest, TaskContext, TestCase, TestStatus


NO_LINES: Mapping[str, int] = MappingProxyType({})
"""The unmeasured lines of a subject that is measured as a whole."""

_MAX_VALUES = 16
"""Limit per factor; the time for combinations grows much faster than the number of values."""

_MAX_PAIRS = 4_000
"""Limit for all factors, for the same reason; so many take two or three seconds."""


def pairwise(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows in which every pair of values of two factors occurs.

    At most 16 values of each factor are combined, or fewer if the number of pairs exceeds the limit. If there
    are too many factors, only the first ones are combined, and the others have their first value.

    Args:
        values: the values of each factor by its name; at least one of each.

    Returns:
        The rows, in a deterministic order; one empty row without factors.
    """
    if not values:
        return [{}]
    places = {name: [*range(count)] for name, count in _combined_counts(values).items()}
    rows = make(places, strength=min(2, len(places)))
    return [{name: values[name][row.get(name, 0)] for name in values} for row in rows]


def _combined_counts(values: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """Return the number of combined values of each factor, without the factors that are not combined."""
    for most in range(_MAX_VALUES, 1, -1):
        counts = {name: min(len(choices), most) for name, choices in values.items()}
        if _count_pairs(counts.values()) <= _MAX_PAIRS:
            return counts
    while _count_pairs(counts.values()) > _MAX_PAIRS:
        counts.popitem()
    return counts


def _count_pairs(counts: Iterable[int]) -> int:
    among, so_far = 0, 0
    for count in counts:
        among += so_far * count
        so_far += count
    return among


class BodySchema:
    """The form of the bodies of a kind of subject, with all members optional.

    Args:
        body_schema: the schema as shown to the model.
    """

    def __init__(self, body_schema: Mapping[str, Any]) -> None:
        self._schema = _lenient_schema(body_schema)

    def validate_body(self, body: Mapping[str, Any]) -> list[Finding]:
        """Return the values of a wrong type; nulls count as missing."""
        return [
            Finding("BODY_INVALID", found.path, found.message)
            for found in validate_against_schema(self._schema, _drop_nulls(body))
        ]


def _lenient_schema(schema: Any) -> Any:
    """Return a schema of types only: members are optional, others are allowed, enums accept any text."""
    if isinstance(schema, list):
        return [_lenient_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    asked = {"required", "additionalProperties", "enum"}
    return {key: _lenient_schema(part) for key, part in schema.items() if key not in asked}


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_nulls(part) for key, part in value.items() if part is not None}
    return value


class SubjectKind(Enum):
    """The kind of a subject."""

    SCENARIO = "scenario"
    POLICY = "policy"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class SubjectTarget:
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
class RunResult:
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
    def is_fenced(self) -> bool | None:
        """True if a fence isolates the program, False without a fence, None without a program."""
        ...

    @property
    def context(self) -> TaskContext:
        """The task context with matching categories."""
        ...

    @property
    def material(self) -> Mapping[str, Any]:
        """The description for the model: a deterministic JSON object without secrets."""
        ...

    def excerpts(self, paths: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Return the parts of the sources around some targets or mutants, at most about 12,000 characters.

        Args:
            paths: the paths of the targets and mutants.

        Returns:
            For each part its file, the number of its first line, and its text; empty without sources.
        """
        ...

    @property
    def body_schema(self) -> Mapping[str, Any]:
        """JSON Schema of the body of a test, with descriptions for a model; suitable for strict modes."""
        ...

    @property
    def targets(self) -> Sequence[SubjectTarget]:
        """All targets, in a stable order."""
        ...

    @property
    def mutants(self) -> Sequence[Mutant]:
        """The mutants to measure first, in a stable order, each with the outcome SURVIVED."""
        ...

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:
        """Return mutants that are worth measuring when nearly all others are detected.

        Args:
            known: the number of mutants that are known.
            count: the maximum number to return.
        """
        ...

    @property
    def unmeasured_lines(self) -> Mapping[str, int]:
        """The numbers of lines of imported packages that have no targets, by their names."""
        ...

    @property
    def changed_since(self) -> str:
        """The revision since which lines have changed, if only these are measured; else empty."""
        ...

    @property
    def unmutated(self) -> str:
        """The reason why nothing is mutated, with a remedy; empty without one."""
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

    def run(self, test: TestCase) -> RunResult:
        """Run a test once."""
        ...

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        """Return the given mutants on which a passing test fails."""
        ...

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        """Return the given mutants that are proved equivalent to the subject."""
        ...

    def baseline_tests(self) -> Iterable[DraftTest]:
        """Yield baseline tests, which follow from the schema: boundary values and pairs of values.

        They expect the current behaviour of the subject. Their categories are those of the context.
        """
        ...
