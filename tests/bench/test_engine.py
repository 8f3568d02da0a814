"""The cores side by side on the same runs; `make bench` gathers the figures in one table.

Nothing here fails for being slow: times depend on the machine and on what else it does.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from bench.measure import best, keep
from bench.players import FUTURES, futures, native, players
from bench.reference import SIZES, SPECS, numeric_spec, sized_spec
from peripety.engine import PERSONAS
from support.engine.backends import BACKEND_NAMES, backend_named, program_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    from peripety.engine import Persona, Program


@pytest.mark.parametrize("player", ["naive", "compiled", "native"])
@pytest.mark.parametrize("name", ["numeric", "mixed", "scheduled", "early"])
def test_dry_run(benchmark: BenchmarkFixture, name: str, player: str) -> None:
    play = players(SPECS[name]())[player]
    benchmark.group = f"dry-run of {name}, 64 runs"
    benchmark.extra_info["turns"] = benchmark(play, 64)


@pytest.mark.parametrize("name", BACKEND_NAMES)
@pytest.mark.benchmark(group="one live turn: act, step, hash")
def test_live_turn(benchmark: BenchmarkFixture, name: str) -> None:
    benchmark(_live_turns(program_on(backend_named(name), numeric_spec())), 1)


@pytest.mark.parametrize("name", SPECS)
def test_players_side_by_side(name: str) -> None:
    keep("dry-run", scenario=name, **best(players(SPECS[name]())))


@pytest.mark.parametrize(("fields", "actions"), SIZES)
def test_players_by_size(fields: int, actions: int) -> None:
    figures = best(players(sized_spec(fields=fields, actions=actions)))
    keep("dry-run", scenario=f"{fields} fields, {actions} actions", **figures)


@pytest.mark.parametrize("persona", PERSONAS)
def test_players_by_persona(persona: Persona) -> None:
    keep("dry-run", scenario=f"numeric, {persona}", **best(players(numeric_spec(), persona)))


def test_live_turns_side_by_side() -> None:
    sides = {name: _live_turns(program_on(backend_named(name), numeric_spec())) for name in BACKEND_NAMES}
    keep("live turn", scenario="numeric", **best(sides))


@pytest.mark.parametrize("name", ["numeric", "mixed"])
def test_two_threads_beside_one(name: str) -> None:
    """On the clock of the wall, where a free second core decides, and in CPU time: what sharing costs."""
    sides = {str(threads): native(SPECS[name](), threads) for threads in (1, 2)}
    wall, cpu = best(sides, time.perf_counter), best(sides)
    load = round(os.getloadavg()[0], 1)
    keep("threads", scenario=name, load=load, cpu=cpu["1"] / cpu["2"], **wall)


@pytest.mark.parametrize("name", ["numeric", "mixed", "scheduled"])
def test_futures_side_by_side(name: str) -> None:
    """In CPU time, and of two threads on the clock of the wall."""
    sides = futures(SPECS[name]())
    two = {"two": sides.pop("two")}
    figures = {**best(sides), **best(two, time.perf_counter)}
    load = round(os.getloadavg()[0], 1)
    keep("futures", scenario=name, load=load, **{side: each * FUTURES for side, each in figures.items()})


def _live_turns(program: Program) -> Callable[[int], int]:
    start = program.new_state()

    def play(turns: int) -> int:
        for _ in range(turns):
            state = start.fork()
            program.act(state, "action0")
            program.step(state)
            state.hash()
        return turns

    return play
