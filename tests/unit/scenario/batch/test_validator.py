"""Work by hand: step by step, within a time, and left in good order."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

import pytest

from peripety.certification.difficulty_gate import evaluate_to_verdict
from peripety.certification.options import DryRunOptions
from peripety.engine.executor import InlineExecutor
from peripety.errors import ResourceExhaustedError
from peripety.scenario.batch.validator import SteppableTask
from support.engine.specs import chance, program
from support.scenario.batches import WORKERS

if TYPE_CHECKING:
    from peripety.certification.difficulty_gate import GateVerdict


CLOSE = program(chance(0.25))
OPTIONS = DryRunOptions(max_runs=200)


def stepped(seconds: float = 60) -> SteppableTask[GateVerdict]:
    return SteppableTask(evaluate_to_verdict(CLOSE, OPTIONS, InlineExecutor(seconds)))


async def test_what_comes_of_it_is_what_a_loop_and_threads_come_to() -> None:
    work = stepped()
    steps = 1
    while not work.step():
        steps += 1
    assert work.result == await evaluate_to_verdict(CLOSE, OPTIONS, WORKERS)
    assert steps > 3


def test_a_piece_waits_for_its_turn() -> None:
    done: list[str] = []

    async def pieces() -> None:
        worker = InlineExecutor(60)
        await worker.run(done.append, "a")
        await worker.run(done.append, "b")

    work = SteppableTask(pieces())
    assert (work.step(), done) == (False, ["a"])
    assert (work.step(), done) == (True, ["a", "b"])


def test_time_is_counted_while_a_piece_is_done_and_not_while_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)

    def taking(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def pieces() -> None:
        worker = InlineExecutor(3)
        for _ in range(3):
            await worker.run(taking, 1.5)

    work = SteppableTask(pieces())
    work.step()
    now += 100
    work.step()
    with pytest.raises(ResourceExhaustedError) as caught:
        work.step()
    assert caught.value.code == "DRY_RUN_TOO_SLOW"


@pytest.mark.filterwarnings("error")
def test_work_that_is_left_ends_without_a_word() -> None:
    for steps in range(4):
        work = stepped()
        for _ in range(steps):
            work.step()
        work.cancel()
        del work
    gc.collect()
