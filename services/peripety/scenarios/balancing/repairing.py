"""Repair of a budget miss: the smallest common factor that brings the fail rate into its budget.

Candidates are compared on common random numbers, so that they differ only by their numbers. The gate then
confirms the result on fresh runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.scenarios.balancing.choosing import repairable
from peripety.scenarios.balancing.knobs import LARGEST_MOVE
from peripety.scenarios.balancing.searching import Trials, tipping
from peripety.scenarios.gate import Miss
from peripety.scenarios.rates import INDIFFERENCE

if TYPE_CHECKING:
    from peripety.scenarios.balancing.searching import Trial
    from peripety.scenarios.model import DryRunOptions, NumberEdit
    from peripety.sim import Program
    from peripety.workers import Workers

__all__ = ["Repair", "repair"]

_SEARCH_RUNS = 256
_STEPS = 32
# Wider than the noise of the search plus the indifference zone of the gate.
_MARGIN = 2 * INDIFFERENCE


@dataclass(frozen=True, slots=True)
class Repair:
    """Result of a repair.

    Attributes:
        program: the repaired scenario; None if even the largest moves miss the budget.
        edits: the moved numbers.
        fail_rate: the rate in the search, of the repaired scenario or of the largest moves.
    """

    program: Program | None
    edits: tuple[NumberEdit, ...]
    fail_rate: float


async def repair(program: Program, miss: Miss, options: DryRunOptions, workers: Workers) -> Repair:
    """Repair the numbers of a scenario that misses its budget.

    Args:
        program: the scenario.
        miss: the kind of the miss.
        options: simulation options.
        workers: worker pool.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit.
    """
    trials = Trials(program, repairable(program.spec), _SEARCH_RUNS, options, workers)
    is_harder = miss is Miss.TOO_EASY
    target = _target(program, harder=is_harder)

    async def at(step: int) -> Trial:
        move = LARGEST_MOVE * step / _STEPS
        factor = 1 + move if is_harder else 1 - move
        return await trials.at(tuple(knob.turned(factor) for knob in trials.knobs))

    def reached(trial: Trial) -> bool:
        return trial.rate >= target if is_harder else trial.rate <= target

    largest = await at(_STEPS)
    if not reached(largest):
        return Repair(None, largest.edits, largest.rate)
    _, best = await tipping(at, _STEPS, reached)
    return Repair(best.program, best.edits, best.rate)


def _target(program: Program, *, harder: bool) -> float:
    """Return the target rate: a margin inside the band, or the middle of a narrow band."""
    budget = program.spec["negativity_budget"]
    least: float = budget["min_fail_rate"]
    most: float = budget.get("max_fail_rate", 1.0)
    middle = (least + most) / 2
    return min(least + _MARGIN, middle) if harder else max(most - _MARGIN, middle)
