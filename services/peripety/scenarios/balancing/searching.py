"""Candidates of repair and balancing, simulated on common random numbers, with a bisection over them.

Candidates share their runs, so that they differ only by their numbers. A result must be confirmed on fresh
runs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety import sim
from peripety.scenarios.balancing.knobs import with_values
from peripety.scenarios.balancing.wording import sentence
from peripety.scenarios.runs import MOST_SECONDS, Runner, too_slow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from peripety.scenarios.balancing.knobs import Knob
    from peripety.scenarios.model import DryRunOptions, NumberEdit
    from peripety.sim import DryRunReport, Program
    from peripety.workers import Workers

__all__ = ["FRESH_RUN", "Setting", "Trial", "Trials", "tipping"]

FRESH_RUN = 2**32
"""The number of the first fresh run: unused by any search and gate."""

Setting: TypeAlias = "tuple[float, ...]"
"""A value for each tunable number."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Candidate: a scenario with moved numbers, and its runs.

    Attributes:
        setting: the values of all tunable numbers.
        program: the scenario.
        edits: the moved numbers.
        report: the runs.
    """

    setting: Setting
    program: Program
    edits: tuple[NumberEdit, ...]
    report: DryRunReport

    @property
    def rate(self) -> float:
        """Return the fail rate."""
        return self.report.fail_rate


class Trials:
    """Candidates of one scenario, each simulated once.

    Args:
        program: the scenario.
        knobs: the tunable numbers.
        runs: the number of runs per candidate.
        options: simulation options.
        workers: worker pool.
    """

    def __init__(
        self, program: Program, knobs: Sequence[Knob], runs: int, options: DryRunOptions, workers: Workers
    ) -> None:
        self.knobs = knobs
        self._spec = program.spec
        self._runs = runs
        self._options = options
        self._workers = workers
        self._tried: dict[Setting, Trial] = {}
        self._until = time.monotonic() + MOST_SECONDS

    @property
    def start(self) -> Setting:
        """Return the current values of all tunable numbers."""
        return tuple(knob.value for knob in self.knobs)

    async def at(self, setting: Setting) -> Trial:
        """Return the candidate of a setting.

        Raises:
            ResourceExhaustedError: the runs exceed the time limit.
        """
        if setting not in self._tried:
            self._tried[setting] = await self.play(setting, 0, self._runs)
        return self._tried[setting]

    async def play(self, setting: Setting, first_run: int, runs: int) -> Trial:
        """Return the candidate of a setting, on other runs."""
        if time.monotonic() > self._until:
            raise too_slow()
        program, edits = await self._workers.run(self._made, setting)
        report = await Runner(program, self._options, self._workers).play(first_run, runs)
        return Trial(setting, program, edits, report)

    def told(self, index: int, before: Setting, after: Setting) -> str:
        """Describe the move of one number between two settings."""
        return sentence(self._spec, self.knobs[index].segments, before[index], after[index])

    def _made(self, setting: Setting) -> tuple[Program, tuple[NumberEdit, ...]]:
        spec, edits = with_values(self._spec, dict(zip(self.knobs, setting, strict=True)))
        return sim.load(sim.canonical(spec)), edits


async def tipping(
    at: Callable[[int], Awaitable[Trial]], steps: int, reached: Callable[[Trial], bool]
) -> tuple[int, Trial]:
    """Return the first of the steps 1 … `steps` that satisfies a predicate, by bisection; the last one must.

    Args:
        at: returns the candidate of a step.
        steps: the number of steps.
        reached: the predicate.
    """
    low, high = 0, steps
    best = await at(high)
    while high - low > 1:
        middle = (low + high) // 2
        candidate = await at(middle)
        if reached(candidate):
            high, best = middle, candidate
        else:
            low = middle
    return high, best
