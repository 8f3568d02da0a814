"""One repair of numbers: the smallest common factor that brings a scenario back into its budget.

The search compares candidates on the same runs, so that they differ by their numbers and not by luck. Whether
the result holds is for the gate to say, on runs that the search has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.scenarios.balancing.knobs import LARGEST_MOVE, knobs, turned
from peripety.scenarios.gate import Miss
from peripety.scenarios.rates import INDIFFERENCE
from peripety.scenarios.runs import Runner

if TYPE_CHECKING:
    from peripety.scenarios.model import DryRunOptions, NumberEdit
    from peripety.scenarios.workers import Workers
    from peripety.sim import Program

__all__ = ["FRESH_RUN", "Repair", "repair"]

FRESH_RUN = 2**32
"""Number of the first run that no search and no gate before it has played."""

_SEARCH_RUNS = 256
_STEPS = 32
# Wide enough for the noise of the search and the indifference of the gate together.
_MARGIN = 2 * INDIFFERENCE


@dataclass(frozen=True, slots=True)
class Repair:
    """What moving numbers came to.

    Attributes:
        program: the repaired scenario; None when even the largest moves do not reach the budget.
        edits: the numbers that were moved.
        fail_rate: the rate in the search, of the repaired scenario or of the largest moves.
    """

    program: Program | None
    edits: tuple[NumberEdit, ...]
    fail_rate: float


async def repair(program: Program, miss: Miss, options: DryRunOptions, workers: Workers) -> Repair:
    """Turn the numbers of a scenario that misses its budget.

    Args:
        program: the scenario.
        miss: what is wrong with it.
        options: how to simulate.
        workers: do the work.

    Raises:
        ResourceExhaustedError: the runs take longer than there is time.
    """
    search = _Search(program, miss, options, workers)
    best = await search.at(_STEPS)
    if not search.reached(best):
        return Repair(None, best.edits, best.fail_rate)
    low, high = 0, _STEPS
    while high - low > 1:
        middle = (low + high) // 2
        candidate = await search.at(middle)
        if search.reached(candidate):
            high, best = middle, candidate
        else:
            low = middle
    return best


class _Search:
    """Candidates of one scenario, by how many of the steps up to the largest move they take."""

    def __init__(self, program: Program, miss: Miss, options: DryRunOptions, workers: Workers) -> None:
        self._spec = program.spec
        self._knobs = knobs(program.spec)
        self._options = options
        self._workers = workers
        self._harder = miss is Miss.TOO_EASY
        self._target = _target(program, harder=self._harder)

    async def at(self, step: int) -> Repair:
        """The candidate at a step, with its rate."""
        move = LARGEST_MOVE * step / _STEPS
        spec, edits = turned(self._spec, self._knobs, 1 + move if self._harder else 1 - move)
        candidate = await self._workers.run(_loaded, spec)
        report = await Runner(candidate, self._options, self._workers).play(0, _SEARCH_RUNS)
        return Repair(candidate, edits, report.fail_rate)

    def reached(self, candidate: Repair) -> bool:
        """Whether a candidate's rate is where it should be."""
        if self._harder:
            return candidate.fail_rate >= self._target
        return candidate.fail_rate <= self._target


def _loaded(spec: dict[str, Any]) -> Program:
    return sim.load(sim.canonical(spec))


def _target(program: Program, *, harder: bool) -> float:
    """The rate to reach: a margin inside the band, or its middle where it is narrow."""
    budget = program.spec["negativity_budget"]
    least: float = budget["min_fail_rate"]
    most: float = budget.get("max_fail_rate", 1.0)
    middle = (least + most) / 2
    return min(least + _MARGIN, middle) if harder else max(most - _MARGIN, middle)
