"""Simulated runs beside an event loop: in a thread, and in pieces short enough to leave between them."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from peripety import context
from peripety.errors import InternalError, ResourceExhaustedError
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from peripety.scenarios.model import DryRunOptions
    from peripety.sim import DryRunReport, Persona
    from peripety.workers import Worker

__all__ = ["MOST_SECONDS", "Playable", "Runner", "too_slow"]

MOST_SECONDS = 120.0
"""Wall time that runs may take, when the caller waits for longer."""

_PIECE_SECONDS = 0.25
# In lockstep so many runs may take as long as one.
_SIDE_BY_SIDE = 64
_GROWTH = 8
# What the planner plays on for each candidate, in each of its turns (docs/semantics.md).
_TURNS_AHEAD = 4 * 8


def too_slow() -> ResourceExhaustedError:
    """The error for runs that do not end in time."""
    return ResourceExhaustedError(
        "The dry-run takes longer than there is time: allow more time, fewer runs or a shorter horizon, or"
        " make the rules cheaper",
        code="DRY_RUN_TOO_SLOW",
    )


class Playable(Protocol):
    """What many runs can be played of: a program, or the state of a run that goes on."""

    @property
    def spec(self) -> dict[str, Any]:
        """The scenario."""
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
        """Play them; see `peripety.sim.Program.dry_run`."""
        ...


class Runner:
    """Plays runs of one program within a budget of wall time.

    A thread cannot be stopped: when the caller goes away, the piece under way is played to its end, however
    long that takes, and no other one is begun. A piece is meant to take a quarter of a second, as the runs
    before it let expect; the first one is a single run, which may take any time: the planner's is not begun
    where a random player's lets expect more than there is. Where it is long, the next ones are larger as long
    as that makes runs cheaper. How runs are cut into pieces depends on the machine; what comes of them does
    not.

    Args:
        program: the scenario.
        options: how to simulate.
        workers: play the pieces.
        most_seconds: so long they may play, where the caller does not wait for less.
    """

    def __init__(
        self, program: Playable, options: DryRunOptions, workers: Worker, most_seconds: float = MOST_SECONDS
    ) -> None:
        self._workers = workers
        self._program = program
        self._options = options
        remaining = context.remaining()
        self._seconds_left = most_seconds if remaining is None else min(most_seconds, remaining)
        self._seconds_per_run: float | None = None
        self._worth_trying = _GROWTH

    async def play(self, first_run: int, runs: int, watch: Mapping[str, float] | None = None) -> DryRunReport:
        """Play `runs` runs from number `first_run` on.

        Args:
            first_run: number of the first.
            runs: how many.
            watch: paths of numbers to follow, with their scales; None counts nothing beyond outcomes.

        Raises:
            ResourceExhaustedError: the runs take longer than there is time.
        """
        async with following(self.playing(first_run, runs, watch)) as reports:
            async for report in reports:
                if report.runs == runs:
                    return report
        raise InternalError("The runs ended before their number was reached")

    async def playing(
        self, first_run: int, runs: int, watch: Mapping[str, float] | None = None
    ) -> AsyncIterator[DryRunReport]:
        """Play as `play` does.

        Yields:
            What was played so far, after each piece; the last time all of it.

        Raises:
            ResourceExhaustedError: the runs take longer than there is time.
        """
        if self._seconds_per_run is None and self._options.persona == "planner":
            await self._workers.run(self._expect, first_run)
        report = await self._workers.run(self._piece, first_run, min(self._affordable(), runs), watch)
        yield report
        while report.runs < runs:
            piece = min(self._affordable(), runs - report.runs)
            more = await self._workers.run(self._piece, first_run + report.runs, piece, watch)
            report = report.merged(more)
            yield report

    def _affordable(self) -> int:
        """How many runs fit into a piece; the first piece is one run, which tells how long they take."""
        if self._seconds_per_run is None:
            return 1
        if self._seconds_per_run > self._seconds_left:
            raise too_slow()
        fitting = int(min(_PIECE_SECONDS, self._seconds_left) / self._seconds_per_run)
        trial = self._worth_trying
        return max(1, fitting, trial if trial * self._seconds_per_run <= self._seconds_left else 0)

    def _expect(self, first_run: int) -> None:
        """Refuse a run of the planner that would not end in time, by what a turn of a random player takes."""
        play = partial(self._program.dry_run, runs=1, first_run=first_run, seed=self._options.seed, threads=1)
        play(horizon=1)  # prepares what all runs share
        started = time.perf_counter()
        report = play(horizon=self._options.horizon)
        taken = time.perf_counter() - started
        self._seconds_left -= taken
        turns = report.horizon * (len(self._program.spec["actions"]) + 1) * _TURNS_AHEAD
        if taken / max(report.turns, 1) * turns > self._seconds_left:
            raise too_slow()

    def _piece(self, first_run: int, runs: int, watch: Mapping[str, float] | None) -> DryRunReport:
        """Play a piece. Only its work is timed: how long it had to wait tells nothing of the next one."""
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
        # Whether they are played side by side is nobody's to say here, but it shows.
        is_cheaper = before is None or self._seconds_per_run < before / 2
        self._worth_trying = min(runs * _GROWTH, _SIDE_BY_SIDE) if is_cheaper else 1
        return report
