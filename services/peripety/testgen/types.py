"""Types of test generation: task, categories, configuration, tests, verdicts and quality."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety.errors import field_error, require_field
from peripety.gateway.types.request import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.core.mutation_testing import Coverage, MutationScore
    from peripety.errors import Finding


class TaskContext(Enum):
    """The kind of task; it determines the categories and their order."""

    __test__ = False  # pytest must not collect this class, nor the others with such a name

    BENCHMARK = "benchmark"
    """A task with hidden tests."""
    PROMPT = "prompt"
    """A task in free text."""
    SCENARIO = "scenario"
    POLICY = "policy"
    CUSTOM = "custom"
    """Custom categories."""


@dataclass(frozen=True, slots=True)
class Category:
    """A kind of test.

    Attributes:
        name: in lower_snake_case.
        description: its definition, for the model.
    """

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class FilePreview:
    """A file that a task can see.

    Attributes:
        path: relative to the working directory, with slashes.
        size_bytes: its size.
        preview: its beginning, at most 16 KiB of UTF-8; empty for a binary file.
        structure: an outline, such as names of functions, keys or columns.
    """

    path: str
    size_bytes: int
    preview: str = ""
    structure: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """The environment of a task. It is inspected, never executed.

    Attributes:
        platform: such as `linux/x86_64`; empty if unknown.
        languages: the languages in use, with versions if known.
        available_tools: tools that can be used.
        prohibited_tools: tools that must not be used.
        files: the visible files, at most 100.
        file_count: the number of files in all.
        cpu_count: processor cores; 0 if unknown.
        memory_bytes: 0 if unknown.
    """

    platform: str = ""
    languages: tuple[str, ...] = ()
    available_tools: tuple[str, ...] = ()
    prohibited_tools: tuple[str, ...] = ()
    files: tuple[FilePreview, ...] = ()
    file_count: int = 0
    cpu_count: int = 0
    memory_bytes: int = 0


class RunProfile(Enum):
    """Mode of a run, in place of rounds for each category with the default limits."""

    DIRECT = "direct"
    """One large first round over all categories, then a few on what it did not detect; no reflections."""
    REASONING = "reasoning"
    """As usual, with limits for a model that reasons."""


REASONING_TOKENS = 200_000
REASONING_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class TestGenConfig:
    """The limits and targets of a run.

    A category continues until a reflection finds no gap or its target is met, never merely at its minimum.
    Limits are caps: they stop the run, which remains stored with its tests.

    Attributes:
        min_tests_per_category: minimum number of tests of a category.
        target_tests_per_category: number of tests of a category that is enough.
        max_rounds_per_category: maximum number of generation rounds of a category.
        enable_global_refinement: True to refine over all categories at the end.
        min_comprehensiveness_score: self-assessment from which no refinement is needed, 1 to 10.
        max_global_refinement_rounds: maximum number of refinement rounds.
        min_total_tests: minimum number of tests in all; a run with fewer does not end early.
        target_total_tests: number of tests in all that is enough, without tests that fail.
        max_total_rounds: maximum number of generation rounds in all.
        max_total_tokens: maximum number of input and output tokens in all.
        max_total_seconds: maximum working time in all.
        parallel_categories: True to work on categories concurrently.
        combinatorial_floor: True to start with tests that follow from the subject's schema, without a model.
            They do not count for the numbers of tests above.
        profile: the mode of the run; None for the default.
    """

    __test__ = False

    min_tests_per_category: int = 2
    target_tests_per_category: int = 5
    max_rounds_per_category: int = 3
    enable_global_refinement: bool = True
    min_comprehensiveness_score: int = 8
    max_global_refinement_rounds: int = 2
    min_total_tests: int = 15
    target_total_tests: int = 30
    max_total_rounds: int = 17
    max_total_tokens: int = 50_000
    max_total_seconds: float = 180.0
    parallel_categories: bool = False
    combinatorial_floor: bool = True
    profile: RunProfile | None = None


@dataclass(frozen=True, slots=True)
class TestGenOrder:
    """The input of a run.

    Attributes:
        description: the task to test.
        task_id: the caller's name of the task; may be empty.
        environment: the environment of the task; None if it is irrelevant.
        context: the kind of task.
        categories: in order, at least one; those of the context, or custom ones.
        config: limits and targets.
        model: as in `GenerateRequest.model`.
        budget: caps in addition to those of the config.
    """

    __test__ = False

    description: str
    task_id: str = ""
    environment: TaskEnvironment | None = None
    context: TaskContext = TaskContext.PROMPT
    categories: tuple[Category, ...] = ()
    config: TestGenConfig = TestGenConfig()
    model: str | None = None
    budget: Budget = Budget()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class DraftTest:
    """A test as written by its author.

    Attributes:
        name: a name; need not be unique.
        input: the input, for display.
        expected_output: the expected output; None if only the execution matters.
        reasoning: the purpose of the test.
        confidence: the confidence of its author, 0 to 1.
        body: the executable form of its subject (`Subject.body_schema`); None for text only.
        category: its category, if the author had to choose.
        replaces: the id of a test that was not met and that this one corrects; empty for none.
        source: the sentence, docstring, type or law that requires the expectation, with its place; empty for
            an expectation that describes what the subject does today.
    """

    name: str
    input: str
    expected_output: str | None = None
    reasoning: str = ""
    confidence: float = 0.5
    body: Mapping[str, Any] | None = None
    category: str | None = None
    replaces: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test of a run.

    Attributes:
        test_id: unique in its run.
        category: its category.
        input: the input, for display.
        expected_output: the expected output; None if only the execution matters.
        reasoning: the purpose of the test.
        confidence: the confidence of its author, 0 to 1.
        body: the executable form of its subject; None for text only.
        round: the round of its category, or of the refinement, from 1; 0 for combinatorial tests.
        is_global: True if it was written by the refinement over all categories.
        is_combinatorial: True if it follows from the subject's schema, without a model.
        replaces: the id of a test that was not met and that this one corrects; empty for none.
        source: the sentence, docstring, type or law that requires the expectation, with its place; empty for
            an expectation that describes what the subject does today.
        name: the name by its author, for readers; need not be unique.
    """

    __test__ = False

    test_id: str
    category: str
    input: str
    expected_output: str | None = None
    reasoning: str = ""
    confidence: float = 0.5
    body: Mapping[str, Any] | None = None
    round: int = 0
    is_global: bool = False
    is_combinatorial: bool = False
    replaces: str = ""
    source: str = ""
    name: str = ""


class TestStatus(Enum):
    """The result of a test."""

    __test__ = False

    PASSED = "passed"
    """In every run."""
    FAILED = "failed"
    """In every run."""
    UNSTABLE = "unstable"
    """In some runs only."""
    NOT_EXECUTABLE = "not_executable"


@dataclass(frozen=True, slots=True)
class EvaluatedTest:
    """The result of running a test on its subject, independent of other tests.

    Attributes:
        status: the result.
        runs: the number of runs.
        observed: the observed output, for display, at most 4 KiB; may be empty.
        findings: defects of the test; `path` points into the body.
        covered: ids of the targets that it covers; empty unless it passed.
        kills: ids of the mutants that it kills; empty unless it passed.
    """

    status: TestStatus
    runs: int
    observed: str = ""
    findings: tuple[Finding, ...] = ()
    covered: frozenset[str] = frozenset()
    kills: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The value of a test in addition to those before it.

    Attributes:
        examined: the result of running it.
        counts: True if it is executable, stable and sound, and adds coverage or kills a mutant.
        findings: its defects, including those in relation to other tests: `STUB`, `TAUTOLOGY`,
            `CONTRADICTION`, `EXPECTATION_NOT_MET` and others.
        new_kills: ids of mutants that it kills and no earlier test does, in order.
        new_coverage: ids of targets that it covers and no earlier test does, in order.
    """

    examined: EvaluatedTest
    counts: bool
    findings: tuple[Finding, ...] = ()
    new_kills: tuple[str, ...] = ()
    new_coverage: tuple[str, ...] = ()


class DuplicateLevel(Enum):
    """The criterion for duplicate tests."""

    CANONICAL = "canonical"
    """Their inputs are equal in canonical form."""
    NEAR = "near"
    """Their inputs are nearly equal."""
    KILLS = "kills"
    """They kill the same mutants and cover the same targets; only in runs of earlier versions."""


CHANGED_LINES_SCOPE = " of the changed lines"
"""The scope of figures of changed lines."""


@dataclass(frozen=True, slots=True)
class SuiteQuality:
    """The measured quality of the tests of a run.

    Attributes:
        coverage: the coverage by kind of target.
        mutation: the mutation score.
        counting_tests: the number of tests that count.
        unmeasured_lines: the numbers of lines of imported packages that are not measured, by their names.
        changed_since: the revision since which lines have changed, if only these are measured; else empty.
        unmutated: the reason why nothing is mutated, with a remedy; empty without one.
    """

    coverage: tuple[Coverage, ...] = field(default=())
    mutation: MutationScore | None = None
    counting_tests: int = 0
    unmeasured_lines: Mapping[str, int] = field(default_factory=dict)
    changed_since: str = ""
    unmutated: str = ""

    @property
    def is_partial(self) -> bool:
        """True if less than half of the program is measured, so that its figures mean little."""
        measured = sum(coverage.reachable for coverage in self.coverage)
        return sum(self.unmeasured_lines.values()) > measured

    @property
    def max_score(self) -> int | None:
        """The highest assessment that the measurements allow, 1 to 10; None if nothing is measured.

        It is ten times the smaller of the coverage and the mutation score.
        """
        reachable = sum(coverage.reachable for coverage in self.coverage)
        shares = []
        if reachable:
            covered = sum(coverage.covered for coverage in self.coverage)
            shares.append(covered / (reachable + sum(self.unmeasured_lines.values())))
        if self.mutation is not None and self.mutation.killed + self.mutation.survived:
            shares.append(self.mutation.score)
        return max(1, int(10 * min(shares))) if shares else None


_EXISTENCE = Category("existence", "The required result exists, in the required place and form.")
_CORRECTNESS = Category("correctness", "The output is right, for usual inputs and for unusual ones.")
_BOUNDARY = Category(
    "boundary",
    "Both sides of every limit: the value at the limit, the nearest one beyond it, nothing at all, the"
    " largest, and inputs that are not valid.",
)

_CATEGORIES_BY_CONTEXT = {
    TaskContext.BENCHMARK: (
        Category(
            "anti_cheat",
            "A fake solution fails: one that returns fixed answers, that looks up a result instead of"
            " computing it, or that uses a prohibited tool.",
        ),
        _EXISTENCE,
        _CORRECTNESS,
        _BOUNDARY,
        Category("integration", "The parts work together: one uses what another has made, in any order."),
    ),
    TaskContext.PROMPT: (_EXISTENCE, _CORRECTNESS, _BOUNDARY),
    TaskContext.SCENARIO: (
        Category("actions", "An allowed action has exactly its described effects, and no others."),
        Category(
            "rejections",
            "An action that is not allowed, or is called wrongly, is rejected and changes nothing.",
        ),
        Category(
            "boundary",
            "Both sides of every limit: the value at which a rule begins to hold, and its neighbours.",
        ),
        Category(
            "events",
            "Events occur exactly when they should, with the effects that they should have.",
        ),
        Category(
            "endings",
            "Each end is reached when its condition holds and not a turn earlier; ways past it are tried.",
        ),
    ),
    TaskContext.POLICY: (
        Category("allowed", "Requests that the rules permit are allowed."),
        Category("denied", "Requests that the rules forbid or do not cover are denied."),
        Category("escalated", "Requests that a person has to decide are escalated."),
        Category(
            "boundary",
            "Both sides of every limit: the value at which a rule begins to apply, and its neighbours.",
        ),
        Category(
            "evasion",
            "Requests that try to evade a rule: different spellings of the same value, neighbours"
            " whose names begin the same way, missing and superfluous arguments.",
        ),
    ),
    TaskContext.CUSTOM: (),
}

_NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_MAX_CATEGORIES = 20
_MAX_NAME_CHARACTERS = 64


def categories_of(context: TaskContext, custom: Sequence[Category] = ()) -> tuple[Category, ...]:
    """Return the categories of a run, in order.

    Args:
        context: the task context.
        custom: custom categories; required for `TaskContext.CUSTOM`, rejected for any other context.

    Raises:
        InvalidArgumentError: custom categories are missing, too many, or not allowed by the context; or a
            name is not in lower_snake_case, too long, or repeated.
    """
    if context is not TaskContext.CUSTOM:
        require_field(not custom, ".categories", "are fixed by the context; leave them out, or use custom")
        return _CATEGORIES_BY_CONTEXT[context]
    require_field(
        0 < len(custom) <= _MAX_CATEGORIES,
        ".categories",
        f"must be 1 to {_MAX_CATEGORIES} where the context is custom",
    )
    names: set[str] = set()
    for number, category in enumerate(custom):
        place = f".categories[{number}].name"
        if not _NAME_PATTERN.fullmatch(category.name) or len(category.name) > _MAX_NAME_CHARACTERS:
            raise field_error(
                place,
                f"must be in lower_snake_case, at most {_MAX_NAME_CHARACTERS} characters",
            )
        require_field(category.name not in names, place, "is repeated; choose a unique name")
        names.add(category.name)
    return tuple(custom)
