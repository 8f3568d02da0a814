"""What the tables of runs hold can be read as it was."""

from __future__ import annotations

import pytest

from peripety.errors import Finding, Severity, UnavailableError
from peripety.gateway.model import Budget, Spent, Usage
from peripety.quality import Coverage, Mutant, MutantOutcome, MutationScore
from peripety.testgen import events as told
from peripety.testgen.categories import categories_of
from peripety.testgen.loop.ledger import Account
from peripety.testgen.model import (
    DuplicateLevel,
    Environment,
    Examined,
    FilePreview,
    Quality,
    TaskContext,
    TestCase,
    TestGenConfig,
    TestGenOrder,
    TestStatus,
    Verdict,
)
from peripety.testgen.sources import Command, KeptSubject, PolicyDocument, ScenarioDocument
from peripety.testgen.stored import Rerun
from peripety.testgen.writing import (
    read_account,
    read_event,
    read_order,
    read_rerun,
    read_subject,
    write_account,
    write_event,
    write_order,
    write_rerun,
    write_subject,
)

SPENT = Spent(3, Usage(1, 2, 3, 4, 5), None, 10**15)
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
EXAMINED = Examined(TestStatus.UNSTABLE, 5, "seen", (FINDING,), frozenset({"rule:/a"}), frozenset({"m", "n"}))
VERDICT = Verdict(EXAMINED, counts=True, findings=(FINDING,), new_kills=("m",), new_coverage=("rule:/a",))
MUTANT = Mutant("m", "swap", "/a", b'{"a": 1}', None, MutantOutcome.SURVIVED, ("t",))
QUALITY = Quality((Coverage("rule", 1, 2, ("/b",), ("/c",)),), MutationScore(1, 1, 2, (MUTANT,)), 3)
ORDER = TestGenOrder(
    "d",
    "t",
    Environment("linux", ("a",), ("b",), ("c",), (FilePreview("p", 3, "x", ("y",)),), 1, 2, 2**40),
    TaskContext.BENCHMARK,
    categories_of(TaskContext.BENCHMARK),
    TestGenConfig(max_total_seconds=0.5, parallel_categories=True),
    "m",
    Budget(1, 2, 10**14, 1.5),
)
STATS = told.Stats(1, 2, {"a": 1}, 3, None, SPENT, 1.25, ("u",), told.StoppedBy.BUDGET, QUALITY, 4)


@pytest.mark.parametrize(
    "event",
    [
        told.Started(ORDER),
        told.Progressed(told.Phase.GLOBAL_REFINEMENT, None, 1, "s", told.StepEnd.FAILED, "u"),
        told.TestMade(TEST),
        told.DuplicateDropped(TEST, "b", DuplicateLevel.KILLS),
        told.TestRan("a_1", VERDICT),
        told.Reflected(told.Reflection("a", "t", told.ReflectionAction.REFINING, ("r",)), 7),
        told.Measured(QUALITY),
        told.Completed(STATS),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events(event: told.RunEvent) -> None:
    kind, text = write_event(event)
    assert text.isascii()
    assert "\0" not in text
    assert read_event(kind, text) == event


def test_why_a_run_failed() -> None:
    error = UnavailableError("m", code="C", details={"a": "b"}, retry_after=1.5)
    read = read_event(*write_event(told.Failed(error, STATS)))
    assert isinstance(read, told.Failed)
    assert (type(read.error), vars(read.error)) == (UnavailableError, vars(error))
    assert read.stats == STATS


def test_what_a_run_is_to_do_and_what_it_has_used() -> None:
    account = Account(SPENT, 1, 2, 10**16, 3.5)
    assert read_order(write_order(ORDER)) == ORDER
    assert read_account(write_account(account)) == account
    rerun = Rerun({"a_1": VERDICT}, QUALITY)
    assert read_rerun(write_rerun(rerun)) == rerun
    assert read_rerun(None) is None


@pytest.mark.parametrize(
    "subject",
    [
        None,
        ScenarioDocument('{"a": "ü"}'.encode()),
        PolicyDocument(b"{}"),
        Command(("a", "b"), "/w", {"K": "v"}, 1.5, 2**30),
    ],
)
def test_what_tests_are_run_on(subject: KeptSubject | None) -> None:
    assert read_subject(write_subject(subject)) == subject


def test_what_variables_hold_is_not_in_how_a_command_is_shown() -> None:
    assert "hidden" not in repr(Command(("a",), environment={"K": "hidden"}))
