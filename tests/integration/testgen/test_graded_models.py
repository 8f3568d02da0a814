"""The benchmark of generated tests in short: two tasks, with models of whom it is known how good they are."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from peripety.testgen.subjects.command.subject import CommandSubject
from support.testgen.graded_tests.columns import original_loop, ours, single_shot
from support.testgen.graded_tests.commands import COMMANDS, PROGRAMS
from support.testgen.graded_tests.measuring import measured
from support.testgen.graded_tests.models import MODELS
from support.testgen.graded_tests.orders import order_of
from support.testgen.graded_tests.policies import POLICIES

if TYPE_CHECKING:
    from support.testgen.graded_tests.tasks import Task


TASKS = {**COMMANDS, **POLICIES}


@pytest.fixture(scope="module", params=["spans", "policy_7_gamma"])
def task(request: pytest.FixtureRequest) -> Task:
    return TASKS[request.param]()


@pytest.mark.slow(reason="measures whole suites by their mutants")
@pytest.mark.parametrize(("model", "wanted"), [("perfect", 0.95), ("hallucinating 30 %", 0.90)])
async def test_our_tests_kill_nearly_all_mutants_and_those_of_the_first_loop_do_not(
    task: Task,
    model: str,
    wanted: float,
) -> None:
    grade, order = MODELS[model], order_of(task)
    mine = measured(task, await ours(task, grade, order))
    assert mine.score >= wanted
    assert (mine.stubs, mine.wrong) == (0, 0)
    first = measured(task, await original_loop(task, grade, order))
    assert mine.score - first.score >= 0.1


@pytest.mark.slow(reason="runs a whole generation for each model")
async def test_a_model_that_is_not_told_what_is_missing_leaves_more_out(task: Task) -> None:
    grade, order = MODELS["perfect"], order_of(task, floor=False)
    told = measured(task, await ours(task, grade, order))
    untold = measured(task, await ours(task, grade, order, has_feedback=False))
    assert told.score - untold.score >= 0.1


@pytest.mark.slow(reason="generates a suite with every graded author")
async def test_stubs_and_wrong_tests_are_handed_over_where_nothing_is_run_and_never_by_us(task: Task) -> None:
    order = order_of(task)
    for model in ("lazy", "hallucinating 50 %"):
        accepted = measured(task, await single_shot(task, MODELS[model], order))
        assert accepted.stubs + accepted.wrong > 0
        mine = measured(task, await ours(task, MODELS[model], order))
        assert (mine.stubs, mine.wrong) == (0, 0)


@pytest.mark.slow(reason="runs thousands of calls of a program")
async def test_an_answer_that_breaks_off_loses_no_test_before_its_end(task: Task) -> None:
    grade, order = MODELS["truncating"], order_of(task)
    assert measured(task, await original_loop(task, grade, order)).tests == 0
    assert measured(task, await ours(task, grade, order)).tests > 10


@pytest.mark.slow(reason="measures whole suites by their mutants")
def test_a_program_does_without_a_process_of_its_own_what_it_does_with_one() -> None:
    task = COMMANDS["spans"]()
    with TemporaryDirectory() as place:
        Path(place, "spans.py").write_bytes((PROGRAMS / "spans.py.txt").read_bytes())
        apart = CommandSubject([sys.executable, "-S", "spans.py"], Path(place))
        assert apart.mutants == task.subject.mutants
        some = [mutant.mutant_id for mutant in apart.mutants][::20]
        for test in (one.case for one in task.hidden[::15]):
            ran, mine = apart.run(test), task.subject.run(test)
            assert (ran.status, ran.covered) == (mine.status, mine.covered)
            assert apart.kills(test, some) == task.subject.kills(test, some)
