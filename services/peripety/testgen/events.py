"""What a run tells: its events, and the sums at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.model import Spent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import PeripetyError
    from peripety.testgen.model import DuplicateLevel, Quality, TestCase, TestGenOrder, Verdict

__all__ = [
    "Completed",
    "DuplicateDropped",
    "Failed",
    "Measured",
    "Phase",
    "Progressed",
    "Reflected",
    "Reflection",
    "ReflectionAction",
    "RunEvent",
    "Started",
    "Stats",
    "StepEnd",
    "StoppedBy",
    "TestMade",
    "TestRan",
]


class Phase(Enum):
    """What a run is busy with."""

    CATEGORY_GENERATION = "category_generation"
    """Tests are made, category by category."""
    GLOBAL_REFINEMENT = "global_refinement"
    """Gaps over all categories are filled."""
    COMPLETE = "complete"


class ReflectionAction(Enum):
    """What a reflection leads to."""

    REFINING = "refining"
    """More tests of the category are made."""
    ASSESSING = "assessing"
    """The whole is assessed."""
    COMPLETE = "complete"
    """Nothing is missing."""


class StepEnd(Enum):
    """How a step of a run ended."""

    DONE = "done"
    FAILED = "failed"
    """A model could not be asked, or what it answered was of no use."""


class StoppedBy(Enum):
    """Why a run ended."""

    SATISFIED = "satisfied"
    """Nothing was missing any more."""
    TARGET_TOTAL_TESTS = "target_total_tests"
    MAX_TOTAL_ROUNDS = "max_total_rounds"
    MAX_TOTAL_TOKENS = "max_total_tokens"
    """Another question might have passed it."""
    MAX_TOTAL_TIME = "max_total_time"
    EXPECTED_GAIN = "expected_gain"
    """Another round was not expected to add anything."""
    CANCELLED = "cancelled"
    BUDGET = "budget"
    """The caller's budget might have been passed."""
    ROUNDS_USED = "rounds_used"
    """Every category and the refinement had its rounds."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Reflection:
    """What a reflection said.

    Attributes:
        category: the category that it is about; None when it is about all of them.
        text: what is there and what is missing.
        action: what it leads to.
        recommendations: what to make next; goes into the next prompt as it is.
    """

    category: str | None
    text: str
    action: ReflectionAction
    recommendations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """The sums of a run.

    Attributes:
        total_tests: tests kept: all that were made but for dropped duplicates.
        total_rounds: generating rounds.
        category_rounds: rounds of each category, by name.
        global_rounds: rounds of the refinement over all categories.
        comprehensiveness_score: the run's own assessment, 1 to 10; None when it did not come to one.
        spent: what was used of models.
        seconds: how long the run was worked on.
        uncertainties: what the run is not sure about, each a sentence.
        stopped_by: why it ended; None while it goes on.
        quality: how good the tests are; None without a subject.
        duplicates: tests that were dropped.
    """

    total_tests: int = 0
    total_rounds: int = 0
    category_rounds: Mapping[str, int] = field(default_factory=dict)
    global_rounds: int = 0
    comprehensiveness_score: int | None = None
    spent: Spent = field(default_factory=Spent)
    seconds: float = 0.0
    uncertainties: tuple[str, ...] = ()
    stopped_by: StoppedBy | None = None
    quality: Quality | None = None
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """The run begins; the first event."""

    order: TestGenOrder


@dataclass(frozen=True, slots=True)
class Progressed:
    """The run went on.

    Attributes:
        phase: what it is busy with.
        category: the category that it is busy with; None when there is none.
        round: the round that begins or ends, from 1; 0 for what is no round.
        status: one short sentence for a person.
        end: how the round, or what is no round, ended; None while it goes on.
        uncertainty: what the run is not sure about since then, a sentence; empty for nothing.
    """

    phase: Phase
    category: str | None
    round: int
    status: str
    end: StepEnd | None = None
    uncertainty: str = ""


@dataclass(frozen=True, slots=True)
class TestMade:
    """A test was made."""

    __test__ = False

    test: TestCase


@dataclass(frozen=True, slots=True)
class DuplicateDropped:
    """A test was made that is the same as an earlier one, and is not kept.

    Attributes:
        test: the dropped test.
        of: id of the test that it repeats.
        level: how it was found out.
    """

    test: TestCase
    of: str
    level: DuplicateLevel


@dataclass(frozen=True, slots=True)
class TestRan:
    """A test was run."""

    __test__ = False

    test_id: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Reflected:
    """The run looked at what it has.

    Attributes:
        reflection: what it said.
        score: the assessment, 1 to 10; None for a reflection on one category.
    """

    reflection: Reflection
    score: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The tests so far were measured."""

    quality: Quality


@dataclass(frozen=True, slots=True)
class Completed:
    """Nothing more will be made; the last event."""

    stats: Stats


@dataclass(frozen=True, slots=True)
class Failed:
    """The run failed; what was made is kept. The last event."""

    error: PeripetyError
    stats: Stats


RunEvent: TypeAlias = (
    Started | Progressed | TestMade | DuplicateDropped | TestRan | Reflected | Measured | Completed | Failed
)
