"""Runs in pieces: the same as in one, within a budget of time, beside a loop that goes on."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from peripety import context
from peripety.errors import ResourceExhaustedError
from peripety.scenarios.model import DryRunOptions
from peripety.scenarios.runs import Runner, merged
from support.scenarios import WORKERS, chance, program, siege
from support.specs import event, spec

if TYPE_CHECKING:
    from peripety.sim import DryRunReport

FAILING = spec(
    actions=[{"id": "wait", "params": {}, "preconditions": {}, "effects": []}],
    random_events=[
        event("even", [{"op": "pop", "path": "state.list"}]),
    ],
    horizon=20,
)


@pytest.mark.parametrize("scenario", [siege(), FAILING], ids=["siege", "failing"])
def test_two_ranges_together_are_the_whole_range(scenario: dict[str, Any]) -> None:
    rules = program(scenario)
    whole = rules.dry_run(runs=96, first_run=5)
    parts = merged(rules.dry_run(runs=64, first_run=5), rules.dry_run(runs=32, first_run=69))
    assert {(e.rule, e.count) for e in parts.errors} == {(e.rule, e.count) for e in whole.errors}
    assert parts.losses == whole.losses
    assert (parts.runs, parts.turns, parts.lost, parts.won, parts.survived, parts.first_run) == (
        whole.runs,
        whole.turns,
        whole.lost,
        whole.won,
        whole.survived,
        whole.first_run,
    )


class Slow:
    """A program whose runs take their time."""

    def __init__(self, seconds_per_run: float) -> None:
        self.pieces: list[int] = []
        self._seconds = seconds_per_run
        self._rules = program(chance(0.5))

    def dry_run(self, *, runs: int, **options: Any) -> DryRunReport:
        self.pieces.append(runs)
        time.sleep(self._seconds * runs)
        return self._rules.dry_run(runs=runs, **options)


async def test_pieces_are_as_long_as_a_quarter_of_a_second() -> None:
    slow: Any = Slow(0.02)
    report = await Runner(slow, DryRunOptions(), WORKERS).play(0, 30)
    assert report.runs == 30
    assert slow.pieces[0] == 1
    assert max(slow.pieces) <= 13


async def test_the_loop_goes_on_while_runs_are_played() -> None:
    slow: Any = Slow(0.1)
    playing = asyncio.ensure_future(Runner(slow, DryRunOptions(), WORKERS).play(0, 2))
    turns = 0
    while not playing.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 5


async def test_runs_that_take_longer_than_the_caller_waits_are_not_begun() -> None:
    slow: Any = Slow(0.1)
    context.enter_call(request_id=None, timeout=0.25)
    with pytest.raises(ResourceExhaustedError) as caught:
        await Runner(slow, DryRunOptions(), WORKERS).play(0, 1000)
    assert caught.value.code == "DRY_RUN_TOO_SLOW"
    assert len(slow.pieces) <= 3
