"""What tests are made for, what a test is, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding
    from peripety.quality import Coverage, MutationScore

__all__ = [
    "Category",
    "Draft",
    "DuplicateLevel",
    "Environment",
    "Examined",
    "FilePreview",
    "Quality",
    "TaskContext",
    "TestCase",
    "TestGenConfig",
    "TestGenOrder",
    "TestStatus",
    "Verdict",
]


class TaskContext(Enum):
    """What kind of task tests are for; it decides the categories and their order."""

    __test__ = False  # it is none of pytest's, like all here whose names begin so

    BENCHMARK = "benchmark"
    """A task with hidden tests."""
    PROMPT = "prompt"
    """A task in free text."""
    SCENARIO = "scenario"
    POLICY = "policy"
    CUSTOM = "custom"
    """Categories of the caller's own."""


@dataclass(frozen=True, slots=True)
class Category:
    """A kind of test.

    Attributes:
        name: in lower_snake_case.
        description: what belongs to it, for the model.
    """

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class FilePreview:
    """A file that a task can see.

    Attributes:
        path: relative to the working directory, with slashes.
        size_bytes: its size.
        preview: its beginning, at most 16 KiB of UTF-8; empty for a file that is no text.
        structure: what is in it, such as names of functions, keys or columns.
    """

    path: str
    size_bytes: int
    preview: str = ""
    structure: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a task is to be done. It is read, never run.

    Attributes:
        platform: such as `linux/x86_64`; empty when not known.
        languages: those in use, with versions where known.
        available_tools: tools that can be used.
        prohibited_tools: tools that must not be used.
        files: those that the task can see, at most 100.
        file_count: how many there are in all.
        cpu_count: processor cores; 0 when not known.
        memory_bytes: 0 when not known.
    """

    platform: str = ""
    languages: tuple[str, ...] = ()
    available_tools: tuple[str, ...] = ()
    prohibited_tools: tuple[str, ...] = ()
    files: tuple[FilePreview, ...] = ()
    file_count: int = 0
    cpu_count: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TestGenConfig:
    """The limits and aims of a run.

    A category goes on until a reflection says that nothing is missing or its target is met, never merely at
    its least number. Limits are caps: they stop the run, which keeps what it has.

    Attributes:
        min_tests_per_category: least tests of a category.
        target_tests_per_category: tests of a category that are enough.
        max_rounds_per_category: most generating rounds of a category.
        enable_global_refinement: whether to refine over all categories at the end.
        min_comprehensiveness_score: self-assessment from which no refinement is needed, 1 to 10.
        max_global_refinement_rounds: most rounds of that refinement.
        min_total_tests: least tests in all; fewer keep a run from ending early.
        target_total_tests: tests in all that are enough.
        max_total_rounds: most generating rounds in all.
        max_total_tokens: most tokens in all, input and output together.
        max_total_seconds: most time in all.
        parallel_categories: whether categories are worked on at the same time.
        combinatorial_floor: whether to start from tests that follow from the subject's schema, without a
            model. They count towards no number of tests above.
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


@dataclass(frozen=True, slots=True)
class TestGenOrder:
    """What a run is to do.

    Attributes:
        description: what is to be tested.
        task_id: the caller's name of the task; may be empty.
        environment: where it is to be done; None when that does not matter.
        context: what kind of task it is.
        categories: in order, at least one; those of the context, or the caller's own.
        config: limits and aims.
        model: as in `GenerateRequest.model`.
        budget: caps beside those of the config.
    """

    __test__ = False

    description: str
    task_id: str = ""
    environment: Environment | None = None
    context: TaskContext = TaskContext.PROMPT
    categories: tuple[Category, ...] = ()
    config: TestGenConfig = TestGenConfig()
    model: str | None = None
    budget: Budget = Budget()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Draft:
    """A test as its author wrote it.

    Attributes:
        name: what its author calls it; need not be unique.
        input: what is given, for a person.
        expected_output: what should come out; None when only the run itself matters.
        reasoning: why it is worth having.
        confidence: how sure its author is, 0 to 1.
        body: how it is run, in the form of its subject (`Subject.body_schema`); None for text only.
        category: where it belongs, when its author was to say.
    """

    name: str
    input: str
    expected_output: str | None = None
    reasoning: str = ""
    confidence: float = 0.5
    body: Mapping[str, Any] | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test of a run.

    Attributes:
        test_id: unique in its run.
        category: its category.
        input: what is given, for a person.
        expected_output: what should come out; None when only the run itself matters.
        reasoning: why it is worth having.
        confidence: how sure its author is, 0 to 1.
        body: how it is run, in the form of its subject; None for text only.
        round: the round of its category that made it, or of the refinement, from 1; 0 for combinatorial ones.
        is_global: whether the refinement over all categories made it.
        is_combinatorial: whether it follows from the subject's schema, without a model.
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


class TestStatus(Enum):
    """What became of a test."""

    __test__ = False

    PASSED = "passed"
    """Every time."""
    FAILED = "failed"
    """Every time."""
    UNSTABLE = "unstable"
    """It passed and failed."""
    NOT_EXECUTABLE = "not_executable"


@dataclass(frozen=True, slots=True)
class Examined:
    """What running a test on its subject showed, whatever other tests there are.

    Attributes:
        status: what became of it.
        runs: how often it was run.
        observed: what came out, for a person, at most 4 KiB; empty when nothing did.
        findings: what is wrong with it; `path` points into the body.
        covered: ids of the targets that it covers; none unless it passed.
        kills: ids of the mutants that it kills; none unless it passed.
    """

    status: TestStatus
    runs: int
    observed: str = ""
    findings: tuple[Finding, ...] = ()
    covered: frozenset[str] = frozenset()
    kills: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a test is worth beside those before it.

    Attributes:
        examined: what running it showed.
        counts: whether it is executable, stable, sound, and adds coverage or kills a mutant.
        findings: what is wrong with it, also in view of others: `STUB`, `TAUTOLOGY`, `CONTRADICTION`,
            `EXPECTATION_NOT_MET` and the like.
        new_kills: ids of mutants that it kills and no test before it does, in order.
        new_coverage: ids of targets that it covers and no test before it does, in order.
    """

    examined: Examined
    counts: bool
    findings: tuple[Finding, ...] = ()
    new_kills: tuple[str, ...] = ()
    new_coverage: tuple[str, ...] = ()


class DuplicateLevel(Enum):
    """How two tests were found to be the same."""

    CANONICAL = "canonical"
    """Their inputs are the same in canonical form."""
    NEAR = "near"
    """Their inputs hardly differ."""
    KILLS = "kills"
    """They kill the same mutants and cover the same targets."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the tests of a run are, measured by running them.

    Attributes:
        coverage: what they cover, by kind of target.
        mutation: how many mutants they kill.
        counting_tests: tests that count.
    """

    coverage: tuple[Coverage, ...] = field(default=())
    mutation: MutationScore | None = None
    counting_tests: int = 0
