"""The search that repairs and balances share: candidates on the same runs, and where they tip over.

Candidates are compared on the same runs, so that they differ by their numbers and not by luck. Whether what
is found holds is for runs to say that no search has seen.
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
"""Number of the first run that no search and no gate before it has played."""

Setting: TypeAlias = "tuple[float, ...]"
"""A value for each knob."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A scenario with some of its numbers moved, and how it played.

    Attributes:
        setting: the values of all knobs.
        program: the scenario.
        edits: the numbers that were moved.
        report: the runs.
    """

    setting: Setting
    program: Program
    edits: tuple[NumberEdit, ...]
    report: DryRunReport

    @property
    def rate(self) -> float:
        """How often the persona lost."""
        return self.report.fail_rate


class Trials:
    """Candidates of one scenario, each tried once.

    Args:
        program: the scenario.
        knobs: the numbers that may be moved.
        runs: how many are played of each candidate.
        options: how to simulate.
        workers: do the work.
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
        """All knobs as they stand."""
        return tuple(knob.value for knob in self.knobs)

    async def at(self, setting: Setting) -> Trial:
        """The candidate of a setting.

        Raises:
            ResourceExhaustedError: the runs take longer than there is time.
        """
        if setting not in self._tried:
            self._tried[setting] = await self.play(setting, 0, self._runs)
        return self._tried[setting]

    async def play(self, setting: Setting, first_run: int, runs: int) -> Trial:
        """The same on other runs."""
        if time.monotonic() > self._until:
            raise too_slow()
        program, edits = await self._workers.run(self._made, setting)
        report = await Runner(program, self._options, self._workers).play(first_run, runs)
        return Trial(setting, program, edits, report)

    def told(self, index: int, before: Setting, after: Setting) -> str:
        """What one knob does between two settings, in a sentence."""
        return sentence(self._spec, self.knobs[index].segments, before[index], after[index])

    def _made(self, setting: Setting) -> tuple[Program, tuple[NumberEdit, ...]]:
        spec, edits = with_values(self._spec, dict(zip(self.knobs, setting, strict=True)))
        return sim.load(sim.canonical(spec)), edits


async def tipping(
    at: Callable[[int], Awaitable[Trial]], steps: int, reached: Callable[[Trial], bool]
) -> tuple[int, Trial]:
    """The first of the steps 1 … `steps` that reaches what is wanted, by bisection; the last one does.

    Args:
        at: the candidate of a step.
        steps: how many there are.
        reached: whether a candidate has what is wanted.
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
