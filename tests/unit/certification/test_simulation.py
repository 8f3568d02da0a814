"""Chunked simulation: same result as one call, within a time budget, without blocking the event loop."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

import pytest

from peripety.certification import simulation
from peripety.certification.options import DryRunOptions
from peripety.certification.simulation import SimulationRunner
from peripety.core import call_context
from peripety.errors import ResourceExhaustedError
from support.engine.specs import chance, program
from support.scenario.batches import WORKERS

if TYPE_CHECKING:
    from peripety.engine import DryRunReport


class Slow:
    """A program whose runs take their time."""

    def __init__(self, seconds_per_run: float, *, side_by_side: int = 1) -> None:
        self.pieces: list[int] = []
        self.personas: list[str] = []
        self._seconds = seconds_per_run
        self._side_by_side = side_by_side
        self._rules = program(chance(0.5))
        self.spec = self._rules.spec

    def dry_run(self, *, runs: int, **options: Any) -> DryRunReport:
        self.pieces.append(runs)
        self.personas.append(options.get("persona", "random"))
        time.sleep(self._seconds * math.ceil(runs / self._side_by_side))
        return self._rules.dry_run(runs=runs, **options)


async def test_pieces_are_as_long_as_a_quarter_of_a_second() -> None:
    slow: Any = Slow(0.02)
    report = await SimulationRunner(slow, DryRunOptions(), WORKERS).run(0, 30)
    assert report.runs == 30
    assert slow.pieces[0] == 1
    assert max(slow.pieces) <= 13


async def test_pieces_grow_where_many_runs_take_no_longer_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_PIECE_SECONDS", 0.01)
    together: Any = Slow(0.03, side_by_side=64)
    await SimulationRunner(together, DryRunOptions(), WORKERS).run(0, 137)
    assert together.pieces == [1, 8, 64, 64]


async def test_the_loop_goes_on_while_runs_are_played() -> None:
    slow: Any = Slow(0.1)
    playing = asyncio.ensure_future(SimulationRunner(slow, DryRunOptions(), WORKERS).run(0, 2))
    turns = 0
    while not playing.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 5


async def test_runs_that_take_longer_than_the_caller_waits_are_not_begun() -> None:
    slow: Any = Slow(0.1)
    call_context.begin_call(request_id=None, timeout=0.25)
    with pytest.raises(ResourceExhaustedError) as caught:
        await SimulationRunner(slow, DryRunOptions(), WORKERS).run(0, 1000)
    assert caught.value.code == "DRY_RUN_TOO_SLOW"
    assert len(slow.pieces) <= 3


async def test_runs_may_be_given_less_time_or_more() -> None:
    slow: Any = Slow(0.04)
    with pytest.raises(ResourceExhaustedError):
        await SimulationRunner(slow, DryRunOptions(), WORKERS, most_seconds=0.01).run(0, 2)
    assert (await SimulationRunner(slow, DryRunOptions(), WORKERS, most_seconds=math.inf).run(0, 2)).runs == 2


async def test_a_planner_is_not_begun_whose_single_run_would_take_too_long() -> None:
    slow: Any = Slow(0.05)
    with pytest.raises(ResourceExhaustedError) as caught:
        await SimulationRunner(slow, DryRunOptions(persona="planner"), WORKERS, most_seconds=5).run(0, 10)
    assert caught.value.code == "DRY_RUN_TOO_SLOW"
    assert slow.personas == ["random", "random"]


async def test_a_planner_plays_where_there_is_time() -> None:
    slow: Any = Slow(0.001)
    report = await SimulationRunner(slow, DryRunOptions(persona="planner"), WORKERS).run(0, 2)
    assert (report.runs, report.persona) == (2, "planner")
