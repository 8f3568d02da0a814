"""Simulation beside an event loop: runs in a thread, in pieces short enough to cancel between them."""

from __future__ import annotations

import time
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from peripety import engine
from peripety.errors import InternalError, ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

    from peripety.certification.options import DryRunOptions
    from peripety.engine import DryRunReport, Persona
    from peripety.engine.executor import Executor


MAX_SECONDS = 120.0
"""The time limit of runs, unless the deadline of the caller is earlier."""

_PIECE_SECONDS = 0.25
# The number of lockstep runs that may take as long as one.
_LOCKSTEP_RUNS = 64
_GROWTH = 8
# The number of turns that the planner simulates for each candidate, in each of its turns
# (docs/reference/semantics.md).
_LOOKAHEAD_TURNS = 4 * 8


def too_slow_error() -> ResourceExhaustedError:
    """Return the error for runs that exceed the time limit."""
    return ResourceExhaustedError(
        "The dry-run exceeds the time limit: allow more time, fewer runs or a shorter horizon, or"
        " make the rules cheaper",
        code="DRY_RUN_TOO_SLOW",
    )


class Simulatable(Protocol):
    """Subject of simulated runs: a program, or the state of a run in progress."""

    @property
    def spec(self) -> dict[str, Any]:
        """Return the specification."""
        ...

    def dry_run(
        self,
        *,
        runs: int,
        persona: Persona = "random",
        seed: int | None = None,
        first_run: int = 0,
        horizon: int | None = None,
        threads: int | None = None,
        detail: bool = False,
        watch: Mapping[str, float] | None = None,
    ) -> DryRunReport:
        """Simulate runs; see `peripety.engine.Program.dry_run`."""
        ...


class SimulationRunner:
    """Simulation of one program within a time limit.

    A thread cannot be stopped. If the caller is cancelled, the current piece runs to its end, and no other
    one starts. A piece should take a quarter of a second, as estimated from earlier runs. The first piece is
    a single run, of unknown duration. For the planner, its duration is first estimated from a run of the
    random persona, and rejected if it exceeds the time limit. If a single run is long, the next pieces grow
    while that makes runs cheaper. The division into pieces depends on the machine; the results do not.

    Args:
        program: the scenario.
        options: simulation options.
        workers: runs the pieces.
        most_seconds: the time limit, unless the deadline of the caller is earlier.
    """

    def __init__(
        self,
        program: Simulatable,
        options: DryRunOptions,
        workers: Executor,
        most_seconds: float = MAX_SECONDS,
    ) -> None:
        self._workers = workers
        self._program = program
        self._options = options
        remaining = workers.remaining_seconds()
        self._seconds_left = most_seconds if remaining is None else min(most_seconds, remaining)
        self._seconds_per_run: float | None = None
        self._worth_trying = _GROWTH

    async def run(self, first_run: int, runs: int, watch: Mapping[str, float] | None = None) -> DryRunReport:
        """Simulate runs with consecutive numbers.

        Args:
            first_run: the number of the first run.
            runs: the number of runs.
            watch: paths of numbers to follow, with their scales; None counts only outcomes.

        Raises:
            ResourceExhaustedError: the runs exceed the time limit.
        """
        async with aclosing(self.stream(first_run, runs, watch)) as reports:
            async for report in reports:
                if report.runs == runs:
                    return report
        raise InternalError("The runs ended before their number was reached")

    async def stream(
        self,
        first_run: int,
        runs: int,
        watch: Mapping[str, float] | None = None,
    ) -> AsyncGenerator[DryRunReport]:
        """Simulate runs as `play` does.

        Yields:
            The report so far, after each piece; the last one is complete.

        Raises:
            ResourceExhaustedError: the runs exceed the time limit.
        """
        if self._seconds_per_run is None and self._options.persona == "planner":
            await self._workers.run(self._require_affordable, first_run)
        report = await self._workers.run(
            self._run_piece,
            first_run,
            min(self._next_piece_size(), runs),
            watch,
        )
        yield report
        while report.runs < runs:
            piece = min(self._next_piece_size(), runs - report.runs)
            more = await self._workers.run(self._run_piece, first_run + report.runs, piece, watch)
            report = report.merge(more)
            yield report

    def _next_piece_size(self) -> int:
        """Return the number of runs in the next piece; the first one has one run, to measure it."""
        if self._seconds_per_run is None:
            return 1
        if self._seconds_per_run > self._seconds_left:
            raise too_slow_error()
        fitting = int(min(_PIECE_SECONDS, self._seconds_left) / self._seconds_per_run)
        trial = self._worth_trying
        return max(1, fitting, trial if trial * self._seconds_per_run <= self._seconds_left else 0)

    def _require_affordable(self, first_run: int) -> None:
        """Raise an error if a planner run would exceed the limit, as estimated from a random run."""
        play = partial(self._program.dry_run, runs=1, first_run=first_run, seed=self._options.seed, threads=1)
        play(horizon=1)  # prepares shared data of all runs
        started = time.perf_counter()
        report = play(horizon=self._options.horizon)
        taken = time.perf_counter() - started
        self._seconds_left -= taken
        turns = report.horizon * (len(self._program.spec["actions"]) + 1) * _LOOKAHEAD_TURNS
        if taken / max(report.turns, 1) * turns > self._seconds_left:
            raise too_slow_error()

    def _run_piece(self, first_run: int, runs: int, watch: Mapping[str, float] | None) -> DryRunReport:
        """Simulate a piece. Only the work is timed; waiting time does not predict the next piece."""
        started = time.perf_counter()
        report = self._program.dry_run(
            runs=runs,
            first_run=first_run,
            persona=self._options.persona,
            seed=self._options.seed,
            horizon=self._options.horizon,
            threads=self._workers.threads,
            detail=watch is not None,
            watch=watch,
        )
        taken = time.perf_counter() - started
        self._seconds_left -= taken
        before, self._seconds_per_run = self._seconds_per_run, taken / runs
        # Parallel execution is detected by its cost: a larger piece makes each run cheaper.
        is_cheaper = before is None or self._seconds_per_run < before / 2
        self._worth_trying = min(runs * _GROWTH, _LOCKSTEP_RUNS) if is_cheaper else 1
        return report


def replace_deal(snapshot: bytes, dealt: Iterable[tuple[str, Any]]) -> bytes:
    """Return a snapshot of turn 0 with other values of deals, each with its path."""
    value = engine.loads(snapshot)
    for path, literal in dealt:
        *holders, last = engine.parse_path(path)[1:]
        holder = value["state"]
        for segment in holders:
            holder = holder[segment]
        holder[last] = literal
    return engine.canonicalize(value)
