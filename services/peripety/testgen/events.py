"""Events of a test generation run, and its statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.types.response import UsageTotal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import PeripetyError
    from peripety.testgen.types import (
        CaseVerdict,
        DuplicateLevel,
        RunProfile,
        SuiteQuality,
        TestCase,
        TestGenOrder,
    )


class GenerationPhase(Enum):
    """The phase of a run."""

    CATEGORY_GENERATION = "category_generation"
    """Tests are written, category by category."""
    GLOBAL_REFINEMENT = "global_refinement"
    """Gaps over all categories are filled."""
    COMPLETE = "complete"


class ReflectionAction(Enum):
    """The consequence of a reflection."""

    REFINING = "refining"
    """More tests of the category are written."""
    ASSESSING = "assessing"
    """The run as a whole is assessed."""
    COMPLETE = "complete"
    """Nothing is missing."""


class StepOutcome(Enum):
    """The outcome of a step."""

    DONE = "done"
    FAILED = "failed"
    """The model call failed, or its response was unusable."""


class GenerationStop(Enum):
    """The reason for the end of a run."""

    SATISFIED = "satisfied"
    """Nothing was missing."""
    TARGET_TOTAL_TESTS = "target_total_tests"
    MAX_TOTAL_ROUNDS = "max_total_rounds"
    MAX_TOTAL_TOKENS = "max_total_tokens"
    """Another model call could exceed it."""
    MAX_TOTAL_TIME = "max_total_time"
    EXPECTED_GAIN = "expected_gain"
    """Another round was not expected to add anything."""
    CANCELLED = "cancelled"
    BUDGET = "budget"
    """Another call could exceed the caller's budget."""
    ROUNDS_USED = "rounds_used"
    """All categories and the refinement have used their rounds."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Reflection:
    """The result of a reflection.

    Attributes:
        category: the category; None for all categories together.
        text: existing and missing tests.
        action: the consequence.
        recommendations: tests to write next; included unchanged in the next prompt.
    """

    category: str | None
    text: str
    action: ReflectionAction
    recommendations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationStats:
    """The statistics of a run.

    Attributes:
        total_tests: the number of tests, without dropped duplicates.
        total_rounds: the number of generation rounds.
        category_rounds: the number of rounds by category name.
        global_rounds: the number of refinement rounds over all categories.
        comprehensiveness_score: the self-assessment, 1 to 10; None without one.
        spent: the usage of models.
        seconds: the working time of the run.
        uncertainties: doubts about the run, one sentence each.
        stopped_by: the reason for its end; None while it is running.
        quality: the measured quality of the tests; None without a subject.
        duplicates: the number of dropped tests.
    """

    total_tests: int = 0
    total_rounds: int = 0
    category_rounds: Mapping[str, int] = field(default_factory=dict)
    global_rounds: int = 0
    comprehensiveness_score: int | None = None
    spent: UsageTotal = field(default_factory=UsageTotal)
    seconds: float = 0.0
    uncertainties: tuple[str, ...] = ()
    stopped_by: GenerationStop | None = None
    quality: SuiteQuality | None = None
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """The run begins; the first event.

    Attributes:
        order: the input of the run.
        is_fenced: True if a fence isolates the program under test, False without a fence, None without a
            program.
        suggested_profile: a profile that suits the model better than that of the order; None for none.
    """

    order: TestGenOrder
    is_fenced: bool | None = None
    suggested_profile: RunProfile | None = None


@dataclass(frozen=True, slots=True)
class GenerationProgressed:
    """Progress of a run.

    Attributes:
        phase: the current phase.
        category: the current category; None without one.
        round: the round that begins or ends, from 1; 0 for other steps.
        status: one short sentence for display.
        end: the outcome of the round or step; None while it is running.
        uncertainty: a new doubt about the run, one sentence; may be empty.
    """

    phase: GenerationPhase
    category: str | None
    round: int
    status: str
    end: StepOutcome | None = None
    uncertainty: str = ""


@dataclass(frozen=True, slots=True)
class TestAdded:
    """A test was written."""

    __test__ = False

    test: TestCase


@dataclass(frozen=True, slots=True)
class DuplicateDropped:
    """A new test was dropped, because it duplicates an earlier one.

    Attributes:
        test: the dropped test.
        of: id of the test that it duplicates.
        level: the criterion.
    """

    test: TestCase
    of: str
    level: DuplicateLevel


@dataclass(frozen=True, slots=True)
class TestRan:
    """A test was run."""

    __test__ = False

    test_id: str
    verdict: CaseVerdict


@dataclass(frozen=True, slots=True)
class ReflectionCompleted:
    """A reflection or assessment was completed.

    Attributes:
        reflection: its result.
        score: the assessment, 1 to 10; None for a reflection on one category.
    """

    reflection: Reflection
    score: int | None = None


@dataclass(frozen=True, slots=True)
class QualityMeasured:
    """The tests so far were measured."""

    quality: SuiteQuality


@dataclass(frozen=True, slots=True)
class GenerationCompleted:
    """The run is complete; the last event."""

    stats: GenerationStats


@dataclass(frozen=True, slots=True)
class GenerationFailed:
    """The run failed; its tests remain stored. The last event."""

    error: PeripetyError
    stats: GenerationStats


GenerationEvent: TypeAlias = (
    GenerationStarted
    | GenerationProgressed
    | TestAdded
    | DuplicateDropped
    | TestRan
    | ReflectionCompleted
    | QualityMeasured
    | GenerationCompleted
    | GenerationFailed
)
