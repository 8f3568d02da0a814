"""The cores side by side on the same runs: `make bench` shows the table and the ratio."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from bench.reference import numeric_spec
from support.cores import CORE_NAMES, core_named, program_on

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from peripety.sim import Program


@pytest.mark.parametrize("name", CORE_NAMES)
@pytest.mark.benchmark(group="dry-run, 20 runs")
def test_dry_run(benchmark: BenchmarkFixture, name: str) -> None:
    program = program_on(core_named(name), numeric_spec())
    report = benchmark(lambda: program.dry_run(runs=20))
    benchmark.extra_info["turns"] = report.turns


@pytest.mark.parametrize("name", CORE_NAMES)
@pytest.mark.benchmark(group="one live turn: act, step, hash")
def test_live_turn(benchmark: BenchmarkFixture, name: str) -> None:
    program = program_on(core_named(name), numeric_spec())
    start = program.new_state()

    def turn() -> str:
        state = start.fork()
        program.act(state, "action0")
        program.step(state)
        return state.hash()

    benchmark(turn)


def test_ratio_of_the_cores() -> None:
    """CPU time per turn, the two cores taking turns in one process; printed, not asserted."""
    programs = {name: program_on(core_named(name), numeric_spec()) for name in CORE_NAMES}
    runs = {"python": 40, "native": 4000}
    best: dict[str, float] = {}
    for _ in range(5):
        for name, program in programs.items():
            best[name] = min(best.get(name, float("inf")), _seconds_per_turn(program, runs[name]))
    print(  # noqa: T201 - the figure is the result
        f"\ndry-run of the reference scenario, CPU time per turn: python {best['python'] * 1e6:.1f} us,"
        f" native {best['native'] * 1e6:.3f} us, ratio {best['python'] / best['native']:.0f}x"
    )


def _seconds_per_turn(program: Program, runs: int) -> float:
    started = time.process_time()
    report = program.dry_run(runs=runs)
    return (time.process_time() - started) / report.turns
