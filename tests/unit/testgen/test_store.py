"""Round trip of test generation runs through the database tables."""

from __future__ import annotations

import pytest

from peripety.core.mutation_testing import Coverage, Mutant, MutantOutcome, MutationScore
from peripety.errors import Finding, Severity, UnavailableError
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.testgen import events as told
from peripety.testgen.run.budget import BudgetAccount
from peripety.testgen.store import (
    RerunResult,
    decode_account,
    decode_event,
    decode_order,
    decode_rerun,
    decode_subject,
    encode_account,
    encode_event,
    encode_order,
    encode_rerun,
    encode_subject,
)
from peripety.testgen.subject_source import CommandSpec, PolicyDocument, ResolvedSubject, ScenarioDocument
from peripety.testgen.subjects.command.python_program import ProgramChanges
from peripety.testgen.types import (
    CaseVerdict,
    DuplicateLevel,
    EvaluatedTest,
    FilePreview,
    SuiteQuality,
    TaskContext,
    TaskEnvironment,
    TestCase,
    TestGenConfig,
    TestGenOrder,
    TestStatus,
    categories_of,
)

SPENT = UsageTotal(3, Usage(1, 2, 3, 4, 5), None, 10**15)
TEST = TestCase(
    "a_1",
    "a",
    "what is\0 given\n",
    None,
    "why",
    0.25,
    {"steps": [{"x": None, "y": [1, 1.5, True, "ü"]}], "seed": 2**53 - 1},
    2,
    is_global=True,
)
FINDING = Finding("STUB", "/steps", "it expects nothing.", Severity.WARNING)
EXAMINED = EvaluatedTest(
    TestStatus.UNSTABLE,
    5,
    "seen",
    (FINDING,),
    frozenset({"rule:/a"}),
    frozenset({"m", "n"}),
)
VERDICT = CaseVerdict(EXAMINED, counts=True, findings=(FINDING,), new_kills=("m",), new_coverage=("rule:/a",))
MUTANT = Mutant("m", "swap", "/a", b'{"a": 1}', None, MutantOutcome.SURVIVED, ("t",))
QUALITY = SuiteQuality((Coverage("rule", 1, 2, ("/b",), ("/c",)),), MutationScore(1, 1, 2, (MUTANT,)), 3)
ORDER = TestGenOrder(
    "d",
    "t",
    TaskEnvironment("linux", ("a",), ("b",), ("c",), (FilePreview("p", 3, "x", ("y",)),), 1, 2, 2**40),
    TaskContext.BENCHMARK,
    categories_of(TaskContext.BENCHMARK),
    TestGenConfig(max_total_seconds=0.5, parallel_categories=True),
    "m",
    Budget(1, 2, 10**14, 1.5),
)
STATS = told.GenerationStats(
    1,
    2,
    {"a": 1},
    3,
    None,
    SPENT,
    1.25,
    ("u",),
    told.GenerationStop.BUDGET,
    QUALITY,
    4,
)


@pytest.mark.parametrize(
    "event",
    [
        told.GenerationStarted(ORDER),
        told.GenerationProgressed(
            told.GenerationPhase.GLOBAL_REFINEMENT,
            None,
            1,
            "s",
            told.StepOutcome.FAILED,
            "u",
        ),
        told.TestAdded(TEST),
        told.DuplicateDropped(TEST, "b", DuplicateLevel.KILLS),
        told.TestRan("a_1", VERDICT),
        told.ReflectionCompleted(told.Reflection("a", "t", told.ReflectionAction.REFINING, ("r",)), 7),
        told.QualityMeasured(QUALITY),
        told.GenerationCompleted(STATS),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events(event: told.GenerationEvent) -> None:
    kind, text = encode_event(event)
    assert text.isascii()
    assert "\0" not in text
    assert decode_event(kind, text) == event


def test_why_a_run_failed() -> None:
    error = UnavailableError("m", code="C", details={"a": "b"}, retry_after=1.5)
    read = decode_event(*encode_event(told.GenerationFailed(error, STATS)))
    assert isinstance(read, told.GenerationFailed)
    assert (type(read.error), vars(read.error)) == (UnavailableError, vars(error))
    assert read.stats == STATS


def test_what_a_run_is_to_do_and_what_it_has_used() -> None:
    account = BudgetAccount(SPENT, 1, 2, 10**16, 3.5)
    assert decode_order(encode_order(ORDER)) == ORDER
    assert decode_account(encode_account(account)) == account
    rerun = RerunResult({"a_1": VERDICT}, QUALITY)
    assert decode_rerun(encode_rerun(rerun)) == rerun
    assert decode_rerun(None) is None


@pytest.mark.parametrize(
    "subject",
    [
        None,
        ScenarioDocument('{"a": "ü"}'.encode()),
        PolicyDocument(b"{}"),
        CommandSpec(("a", "b"), "/w", {"K": "v"}, 1.5, 2**30),
        CommandSpec(("a",), changes=ProgramChanges("main", {"a.py": ((1, 2), (4, 4))})),
    ],
)
def test_what_tests_are_run_on(subject: ResolvedSubject | None) -> None:
    assert decode_subject(encode_subject(subject)) == subject


def test_what_variables_hold_is_not_in_how_a_command_is_shown() -> None:
    assert "hidden" not in repr(CommandSpec(("a",), environment={"K": "hidden"}))
